/* SPDX-License-Identifier: MIT
 *
 * See bystander.h.
 */
#include "bystander.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    QUICK_N = 1000, /* quick on each backend */
    QUICK_ROUNDS = 500,
    JOB_N = 100000,   /* quick on none */
    JOB_ROUNDS = 100, /* each may wait for a turn of many milliseconds */
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
    Shuf__Permute permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    permute.seed = seed++;
    wire_send_permute(w, &permute);
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
    return sorted[(count * percent + 99) / 100 - 1];
}

static struct latency measure(const char *load, struct wire *w, uint64_t n, unsigned rounds)
{
    double *ms = calloc(rounds, sizeof *ms);
    assert_non_null(ms);
    for (unsigned i = 0; i < rounds; i++) {
        const double before = bystander_clock_ms();
        request(w, n);
        ms[i] = bystander_clock_ms() - before;
    }
    qsort(ms, rounds, sizeof *ms, compare_doubles);
    const struct latency latency = {percentile(ms, rounds, 50), percentile(ms, rounds, 99),
                                    ms[rounds - 1]};
    free(ms);
    printf("bystander, n %d, %s: p50 %.3f ms, p99 %.3f ms, worst %.3f ms\n", (int)n, load,
           latency.p50_ms, latency.p99_ms, latency.worst_ms);
    fflush(stdout);
    return latency;
}

struct latency bystander_measure(const char *load, struct wire *w)
{
    return measure(load, w, QUICK_N, QUICK_ROUNDS);
}

struct latency bystander_connect_and_measure(const char *load, const struct harness *h)
{
    struct wire *w = wire_greet(h);
    const struct latency latency = bystander_measure(load, w);
    wire_close(w);
    return latency;
}

struct latency bystander_measure_jobs(const char *load, struct wire *w)
{
    return measure(load, w, JOB_N, JOB_ROUNDS);
}

static void expect_below(const char *name, double got, double most)
{
    if (got > most)
        fail_msg("%s of a bystander: %.3f ms, expected at most %.3f ms", name, got, most);
}

void bystander_expect_below(const struct latency *got, double p50_ms, double p99_ms)
{
    expect_below("p50", got->p50_ms, p50_ms);
    expect_below("p99", got->p99_ms, p99_ms);
}

void bystander_expect_near(const struct latency *got, const struct latency *idle)
{
    const double scale = WIRE_SANITIZED ? 10 : 1;
    bystander_expect_below(got, 5 * idle->p50_ms + 2 * scale, 5 * idle->p99_ms + 50 * scale);
}
