/* SPDX-License-Identifier: MIT
 *
 * See bystander.h.
 */
#include "support/bystander.h"

#include "support/cmocka_all.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    QUICK_N = 1000,  /* quick on each backend */
    JOB_N = 100000,  /* quick on none */
    LEAST_MS = 1000, /* of a measurement: the load needs time to reach its full strength */
    PAUSE_US = 1000, /* before each request, which so meets the daemon at any time of its work */
    LEAST_COUNT = 100,
    MOST_COUNT = 10000,
    ATTEMPTS = 3,
    HIGHEST_PRIORITY = -20,
};

double bystander_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Another seed each time, so the cache never has the result. */
static void request(struct wire *w, uint64_t n)
{
    static uint64_t seed = UINT64_C(1) << 32;
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    permute.permutation.seed = seed++;
    wire_send_result(w, &permute);
    wire_read_permutation(w, wire_expect(w, SHUF_OK, "")->payload_bytes, n);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest value that at least `percent` of the values do not exceed. */
static double percentile(const double *sorted, unsigned count, unsigned percent)
{
    return sorted[((uint64_t)count * percent + 99) / 100 - 1];
}

/* Sets the priority of this thread and of the daemon's first one, which runs the loop. */
static void set_priority(const struct wire *w, int priority)
{
    struct ucred daemon;
    socklen_t size = sizeof daemon;
    assert_int_equal(getsockopt(w->fd, SOL_SOCKET, SO_PEERCRED, &daemon, &size), 0);
    (void)!setpriority(PRIO_PROCESS, (id_t)daemon.pid, priority);
    (void)!setpriority(PRIO_PROCESS, 0, priority);
}

static unsigned take_samples(double *ms, struct wire *w, uint64_t n)
{
    unsigned count = 0;
    const double end_ms = bystander_clock_ms() + LEAST_MS;
    for (double begin_ms, now_ms = 0;
         (now_ms < end_ms || count < LEAST_COUNT) && count < MOST_COUNT; count++) {
        usleep(PAUSE_US);
        begin_ms = bystander_clock_ms();
        request(w, n);
        now_ms = bystander_clock_ms();
        ms[count] = now_ms - begin_ms;
    }
    return count;
}

static struct latency measure(const char *load, struct wire *w, uint64_t n)
{
    static double ms[MOST_COUNT];
    const int priority = getpriority(PRIO_PROCESS, 0);
    set_priority(w, HIGHEST_PRIORITY);
    const unsigned count = take_samples(ms, w, n);
    set_priority(w, priority);
    qsort(ms, count, sizeof *ms, compare_doubles);
    const struct latency latency = {percentile(ms, count, 50), percentile(ms, count, 99),
                                    ms[count - 1]};
    printf("bystander, n %d, %s: %u requests, p50 %.3f ms, p99 %.3f ms, worst %.3f ms\n", (int)n,
           load, count, latency.p50_ms, latency.p99_ms, latency.worst_ms);
    fflush(stdout);
    return latency;
}

struct latency bystander_measure(const char *load, struct wire *w)
{
    return measure(load, w, QUICK_N);
}

static bool is_below(const char *name, double got, double most)
{
    if (got > most)
        printf("%s of the bystander: %.3f ms, expected at most %.3f ms\n", name, got, most);
    return got <= most;
}

static void expect_below(const char *load, struct wire *w, uint64_t n, const struct latency *most)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct latency got = measure(load, w, n);
        if (is_below("worst latency", got.worst_ms, most->worst_ms) &&
            is_below("p50", got.p50_ms, most->p50_ms) && is_below("p99", got.p99_ms, most->p99_ms))
            return;
    }
    fail_msg("the bystander is delayed by this load: %s", load);
}

void bystander_expect_near(const char *load, struct wire *w, const struct latency *idle)
{
    const double scale = TEST_SANITIZED ? 5 : 1;
    const struct latency most = {5 * idle->p50_ms + 2 * scale, 5 * idle->p99_ms + 100 * scale,
                                 2000 * scale};
    expect_below(load, w, QUICK_N, &most);
}

void bystander_expect_jobs_below(const char *load, struct wire *w, const struct latency *most)
{
    expect_below(load, w, JOB_N, most);
}

/* ---- Sockets whose close() takes long ---- */

enum { LINGER_S = 100, READERS = 256 };

static int readers[READERS];
static size_t reader_count;

int lingering_make(void)
{
    static const uint8_t bytes[1 << 16];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(reader_count < READERS);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    readers[reader_count] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(readers[reader_count++] >= 0);
    close(listening);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    return fd;
}

static void set_linger(int fd, int seconds)
{
    const struct linger linger = {.l_onoff = seconds > 0, .l_linger = seconds};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
}

void lingering_arm(int fd)
{
    set_linger(fd, LINGER_S);
}

void lingering_disarm(int fd)
{
    set_linger(fd, 0);
}

void lingering_end_all(void)
{
    while (reader_count > 0)
        close(readers[--reader_count]);
}
