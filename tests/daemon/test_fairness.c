/* SPDX-License-Identifier: MIT
 *
 * Users take turns: many long jobs of one user do not make the other users wait. A bystander's
 * latency has a bound.
 */
#include "shuf.h"
#include "support/bystander.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HOGS = 5,     /* users, each with more jobs than the queue accepts */
    HOG_JOBS = 6, /* connections of each user */
    HOG_UID = 61000,
    N = 3000000, /* large enough to take milliseconds, and too large for the loop's thread */
    ROUNDS = TEST_SANITIZED ? 1 : 3,
    TIMEOUT_MS = 60000,
    LATE_CLIENTS = 8,
    PREFETCHING = 64, /* connections that send prefetches */
    PREFETCHES = 4,   /* of each connection */
    BYSTANDER_UID = HOG_UID + HOGS,
};

/* A bystander's job waits for a turn of the others: 10 ms on a CPU, 2 ms on a GPU, and more if
 * other programs use the processors. */
static const struct latency most_for_job = {
    .p50_ms = TEST_SANITIZED ? 400 : 100,
    .p99_ms = TEST_SANITIZED ? 4000 : 1000,
    .worst_ms = TEST_SANITIZED ? 20000 : 5000,
};

static struct harness h;
static pid_t hogs[HOGS * HOG_JOBS];
static unsigned n_hogs;
static pid_t parent;

/* A job that never ends: it would have to compute 2^61 values to find the first position. */
static const shuf_request endless = {.permutation = {.algorithm = "philox24",
                                                     .n = (UINT64_C(1) << 61) + 1,
                                                     .view = SHUF_VIEW_SLICE,
                                                     .offset = UINT64_C(1) << 61,
                                                     .count = 1,
                                                     .stride = 1}};

static int start(void **state)
{
    (void)state;
    if (geteuid() != 0) /* only root can become several users */
        exit(HARNESS_SKIP);
    wire_start(&h, harness_backend,
               "socket_mode = 0666\nqueue = 4\nhost_memory = 256Mi\n"
               "device_memory = 256Mi\n");
    return chmod(h.directory, 0755);
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

/* Fails the test in the parent, and ends a child. After a failed assertion of cmocka, a child would
 * go on with the next tests. */
static void check(bool condition, const char *text)
{
    if (condition)
        return;
    if (getpid() == parent)
        fail_msg("%s", text);
    fprintf(stderr, "user %d: %s\n", (int)getuid(), text);
    _exit(1);
}

static shuf *open_handle(void)
{
    shuf *handle;
    check(shuf_connect(&handle, h.socket) == SHUF_OK, "cannot connect");
    shuf_set_timeout(handle, TIMEOUT_MS);
    return handle;
}

/* ---- Hogs ---- */

static void run_hog(uid_t uid, uint64_t seed)
{
    shuf *handle;
    uint64_t value;
    shuf_request own = endless;
    own.permutation.seed = seed;
    if (setgid(uid) || setuid(uid) || shuf_connect(&handle, h.socket))
        _exit(2);
    _exit(shuf_copy(handle, &own, &value, sizeof value, NULL) == SHUF_BUSY ? 3 : 1);
}

static void start_hog(uid_t uid, uint64_t seed)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_hog(uid, seed);
    hogs[n_hogs++] = pid;
}

/* Ends all hogs. Each job beyond its user's queue has failed with BUSY. `others` is the number of
 * connections that remain. */
static void end_hogs(unsigned expected_busy, uint64_t others)
{
    unsigned busy = 0;
    for (unsigned i = 0; i < n_hogs; i++) {
        int status;
        kill(hogs[i], SIGKILL);
        assert_int_equal(waitpid(hogs[i], &status, 0), hogs[i]);
        busy += WIFEXITED(status) && WEXITSTATUS(status) == 3;
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 3);
    }
    n_hogs = 0;
    assert_int_equal(busy, expected_busy);
    WIRE_AWAIT(&h, s, s.queued == 0 && s.clients == others + 1);
}

static unsigned count_ended_hogs(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n_hogs; i++) {
        siginfo_t end = {.si_pid = 0};
        assert_int_equal(waitid(P_PID, (id_t)hogs[i], &end, WEXITED | WNOHANG | WNOWAIT), 0);
        count += end.si_pid != 0;
    }
    return count;
}

static void start_hogs(void)
{
    for (unsigned user = 0; user < HOGS; user++)
        for (unsigned job = 0; job < HOG_JOBS; job++)
            start_hog((uid_t)(HOG_UID + user), job);
    wire_await_queued(&h, HOGS * 5); /* of each user one job runs and four wait */
    unsigned waited = 0;
    while (count_ended_hogs() < HOGS * (HOG_JOBS - 5))
        wire_wait(&waited, "the other jobs are refused");
}

/* ---- A bystander beside hogs ---- */

/* Requests the last value of one permutation of 10^9 numbers after the other. The daemon has to
 * compute all values before it. */
static void run_late_values(int channel, void *seed)
{
    (void)channel;
    shuf_request late = {.permutation = {.algorithm = "philox24",
                                         .n = 1000000000,
                                         .view = SHUF_VIEW_SLICE,
                                         .offset = 999999999,
                                         .count = 1,
                                         .stride = 1}};
    uint64_t value;
    shuf *handle = open_handle();
    for (late.permutation.seed = *(uint64_t *)seed << 32;; late.permutation.seed++) {
        const shuf_status status = shuf_copy(handle, &late, &value, sizeof value, NULL);
        check(status == SHUF_OK || status == SHUF_BUSY, shuf_message(handle));
        if (status == SHUF_BUSY)
            usleep(1000);
    }
}

/* Sends prefetches of endless jobs. The connections are closed, which cancels the prefetches, and
 * opened again. */
static void run_prefetches(int channel, void *seed)
{
    struct wire *w[PREFETCHING] = {NULL};
    (void)channel, (void)seed;
    for (unsigned i = 0;; i = (i + 1) % PREFETCHING) {
        if (w[i])
            wire_close(w[i]);
        w[i] = wire_greet(&h);
        for (int prefetch = 0; prefetch < PREFETCHES; prefetch++) {
            struct shuf__result_message permute = wire_endless_permutation();
            permute.delivery.prefetch = true;
            wire_send_result(w[i], &permute);
            const Shuf__Reply *reply = wire_receive(w[i]);
            check(reply->status == SHUF_OK || reply->status == SHUF_BUSY, reply->message);
        }
    }
}

/* A small request on a GPU waits for the calls of the others too, because these are not cut. */
static void expect_served_beside(const char *load, struct wire *w, const struct latency *idle)
{
    bystander_expect_jobs_below(load, w, &most_for_job);
    if (strcmp(harness_backend, "cpu") == 0)
        bystander_expect_near(load, w, idle);
}

struct load {
    const char *name;
    unsigned clients;
    void (*run)(int channel, void *seed);
};

static void expect_served_beside_load(const struct load *load, struct wire *w,
                                      const struct latency *idle)
{
    struct child children[LATE_CLIENTS];
    for (uint64_t seed = 0; seed < load->clients; seed++)
        children[seed] = child_start_as(HOG_UID, load->run, &seed);
    WIRE_AWAIT(&h, s, s.queued >= 5); /* one job runs and four wait */
    expect_served_beside(load->name, w, idle);
    for (unsigned i = 0; i < load->clients; i++)
        child_kill(&children[i]);
    WIRE_AWAIT(&h, s, s.queued == 0 && s.clients == 2);
}

/* The bystander's requests are never BUSY, and its jobs wait for one turn. */
static void bystander_is_served_soon(void **state)
{
    static const struct load late_values = {"late values of 8 clients", LATE_CLIENTS,
                                            run_late_values};
    static const struct load prefetches = {"prefetches of 64 connections", 1, run_prefetches};
    (void)state;
    struct wire *w = wire_greet_as(&h, BYSTANDER_UID);
    const struct latency idle = bystander_measure("idle", w);
    start_hogs();
    expect_served_beside("endless jobs of 5 users", w, &idle);
    end_hogs(HOGS * (HOG_JOBS - 5), 1);
    expect_served_beside_load(&late_values, w, &idle);
    expect_served_beside_load(&prefetches, w, &idle);
    wire_close(w);
}

/* ---- Requests while hogs run ---- */

static void expect_ok(shuf *handle, shuf_status status)
{
    check(status == SHUF_OK, shuf_message(handle));
}

static void expect_permutation(const uint32_t *values, uint64_t n)
{
    bool *seen = calloc(n, sizeof *seen);
    check(seen != NULL, "out of memory");
    for (uint64_t i = 0; i < n; i++) {
        check(values[i] < n && !seen[values[i]], "no permutation");
        seen[values[i]] = true;
    }
    free(seen);
}

static void permute(shuf *handle, uint64_t n, uint64_t seed, const char *algorithm)
{
    uint32_t *values = malloc(n * sizeof *values);
    const shuf_request p = {.permutation = {.algorithm = algorithm, .n = n, .seed = seed}};
    check(values != NULL, "out of memory");
    expect_ok(handle, shuf_copy(handle, &p, values, n * sizeof *values, NULL));
    expect_permutation(values, n);
    free(values);
}

static void look_up(shuf *handle, uint64_t seed)
{
    uint64_t at = N - 1, found;
    const shuf_request p = {.permutation = {.algorithm = "philox24", .n = N, .seed = seed}};
    expect_ok(handle, shuf_index(handle, &p.permutation, SHUF_FORWARD, &at, 1, &found));
    expect_ok(handle, shuf_index(handle, &p.permutation, SHUF_INVERSE, &found, 1, &found));
    check(found == N - 1, "not the position");
}

static void summarize(shuf *handle, uint64_t seed)
{
    shuf_result result;
    const shuf_request p = {.permutation = {.n = 20 * N, .seed = seed}};
    expect_ok(handle, shuf_summarize(handle, &p, &result));
    check(result.device_ns > 0, "no time");
}

static void shuffle(shuf *handle, uint64_t seed)
{
    uint32_t *records = malloc(2 * N * sizeof *records);
    const shuf_records r = {.n = N, .record = sizeof *records, .seed = seed};
    check(records != NULL, "out of memory");
    for (uint32_t i = 0; i < N; i++)
        records[i] = i;
    expect_ok(handle, shuf_shuffle(handle, &r, records, records + N, N * sizeof *records, NULL));
    expect_permutation(records + N, N);
    free(records);
}

static void lease(shuf *handle, uint64_t seed)
{
    shuf_lease *taken = NULL;
    uint32_t last;
    const shuf_request noise = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_UNIFORM, .seed = seed, .count = N, .dtype = SHUF_U32}};
    expect_ok(handle, shuf_lease_take(handle, &noise, NULL, &taken));
    expect_ok(handle, shuf_lease_read(handle, taken, (N - 1) * sizeof last, sizeof last, &last));
    expect_ok(handle, shuf_lease_release(handle, &taken));
}

/* Every kind of request is served, small and large, while endless jobs of other users run. */
static void every_request_is_served_beside_endless_jobs(void **state)
{
    (void)state;
    start_hogs();
    shuf *handle = open_handle();
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        permute(handle, 1000, seed, "primefold");
        permute(handle, N, seed, "primefold");
        permute(handle, N, seed, "philox24");
        look_up(handle, seed);
        summarize(handle, seed);
        shuffle(handle, seed);
        lease(handle, seed);
    }
    shuf_close(handle);
    end_hogs(HOGS * (HOG_JOBS - 5), 0);
}

/* Four users take turns all the time. Their jobs are paused again and again, and still give the
 * right values. */
static void paused_jobs_give_right_values(void **state)
{
    (void)state;
    pid_t child[4];
    for (unsigned i = 0; i < 4; i++) {
        if ((child[i] = fork()) == 0) {
            if (setgid(HOG_UID + i) || setuid(HOG_UID + i))
                _exit(2);
            shuf *handle = open_handle();
            for (uint64_t round = 0; round < ROUNDS; round++) {
                permute(handle, 5 * N, 4 * round + i, "philox24");
                look_up(handle, 4 * round + i);
                summarize(handle, 4 * round + i);
                shuffle(handle, 4 * round + i);
            }
            shuf_close(handle);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
}

/* A paused job ends when its client leaves. The daemon ends on SIGTERM. */
static void paused_jobs_end_with_their_clients(void **state)
{
    (void)state;
    start_hogs();
    usleep(100000); /* some turns */
    end_hogs(HOGS * (HOG_JOBS - 5), 0);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    parent = getpid();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_request_is_served_beside_endless_jobs, start, stop),
        cmocka_unit_test_setup_teardown(bystander_is_served_soon, start, stop),
        cmocka_unit_test_setup_teardown(paused_jobs_give_right_values, start, stop),
        cmocka_unit_test_setup_teardown(paused_jobs_end_with_their_clients, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
