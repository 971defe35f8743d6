/* SPDX-License-Identifier: MIT
 *
 * Calls that end early. By a timeout: while the daemon hangs (stopped by SIGSTOP), a call fails,
 * and when the daemon continues, the handle works again. The upper limit of the times leaves a slow
 * machine more than a second, and is less than ten times the timeout. By shuf_cancel() in another
 * thread: without it the calls would last for minutes or hours.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/sanitized.h"
#include "support/take.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 300,
    LATE_MS = 2000,
    ENOUGH_MS = 60000, /* of a daemon that does not hang */
};
static const shuf_request small = {.permutation = {.n = 1000, .seed = 7}};

/* A call that began then has ended at its timeout. */
static void expect_in_time(uint64_t begin)
{
    assert_in_range(harness_now_ms() - begin, TIMEOUT_MS, LATE_MS);
}

static void stop_daemon(void)
{
    assert_true(harness_pause(&harness_shared));
}

static void continue_daemon(void)
{
    harness_continue(&harness_shared);
}

/* Lets the daemon continue after `ms`, from another process. */
static pid_t continue_daemon_after(unsigned ms)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep(ms * 1000);
        _exit(kill(harness_shared.pid, SIGCONT) != 0);
    }
    return child;
}

static shuf *open_with_timeout(unsigned ms)
{
    shuf *handle = client_open();
    assert_int_equal(shuf_set_timeout(handle, ms), SHUF_OK);
    return handle;
}

static void hung_daemon_is_an_error(void **state)
{
    (void)state;
    shuf *handle = open_with_timeout(ENOUGH_MS);
    uint64_t *values = expected_values(&small, NULL);
    shuf_result result;
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &small, NULL, &lease), SHUF_OK);
    shuf_set_timeout(handle, TIMEOUT_MS);
    stop_daemon();
    uint64_t begin = harness_now_ms();
    client_expect(handle, shuf_summarize(handle, &small, &result), SHUF_TIMEOUT,
                  "the daemon did nothing for 300 ms");
    expect_in_time(begin);
    begin = harness_now_ms(); /* the call connects again, to the same daemon */
    client_expect(handle, shuf_summarize(handle, &small, &result), SHUF_TIMEOUT, "for 300 ms");
    expect_in_time(begin);
    assert_true(expected_equal(values, lease->data, 4, small.permutation.n));
    assert_int_equal(shuf_lease_release(handle, &lease),
                     SHUF_OK); /* the lease has ended with its connection */
    assert_null(lease);
    continue_daemon();
    shuf_set_timeout(handle, ENOUGH_MS); /* the daemon may be slow to wake up */
    assert_true(client_check(handle, &small));
    free(values);
    shuf_close(handle);
}

static uint64_t daemon_lease_count(shuf *handle)
{
    shuf_daemon daemon;
    assert_int_equal(shuf_daemon_status(handle, &daemon), SHUF_OK);
    return daemon.leases;
}

static void release_at_hung_daemon_is_an_error(void **state)
{
    (void)state;
    shuf *handle = open_with_timeout(ENOUGH_MS);
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &small, NULL, &lease), SHUF_OK);
    shuf_set_timeout(handle, TIMEOUT_MS);
    stop_daemon();
    const uint64_t begin = harness_now_ms();
    client_expect(handle, shuf_lease_release(handle, &lease), SHUF_TIMEOUT, "did nothing");
    expect_in_time(begin);
    assert_null(lease);
    continue_daemon();
    shuf_set_timeout(handle, ENOUGH_MS);
    while (daemon_lease_count(handle) > 0)
        usleep(10000);
    shuf_close(handle);
}

static bool stop_daemon_once(void *context, const void *bytes, size_t size)
{
    (void)bytes;
    if (*(size_t *)context == 0)
        stop_daemon();
    *(size_t *)context += size;
    return true;
}

static void daemon_hangs_during_values(void **state)
{
    (void)state;
    static const shuf_request large = {.permutation = {.n = 8000000}};
    shuf *handle = open_with_timeout(ENOUGH_MS);
    size_t received = 0;
    assert_int_equal(shuf_summarize(handle, &large, &(shuf_result){0}), SHUF_OK);
    shuf_set_timeout(handle, TIMEOUT_MS);
    do { /* the daemon may be too late for the first values */
        client_expect(handle, shuf_each(handle, &large, stop_daemon_once, &received, NULL),
                      SHUF_TIMEOUT, "did nothing for 300 ms");
    } while (received == 0);
    assert_in_range(received, 1, large.permutation.n * 4 - 1);
    continue_daemon();
    shuf_close(handle);
}

/* A large shuffle first asks the daemon how much memory it has. The daemon hangs at this first
 * request, and the call must not repeat it. */
static void large_shuffle_is_not_repeated(void **state)
{
    (void)state;
    shuf *handle = open_with_timeout(TIMEOUT_MS);
    static const shuf_records records = {.n = 65, .record = 1 << 20};
    const size_t bytes = records.n * records.record;
    char *in = calloc(2, bytes);
    unsigned lost = 0;
    assert_non_null(in);
    shuf_set_observer(handle, client_count_lost, &lost);
    stop_daemon();
    const uint64_t begin = harness_now_ms();
    client_expect(handle, shuf_shuffle(handle, &records, in, in + bytes, bytes, NULL), SHUF_TIMEOUT,
                  "did nothing");
    expect_in_time(begin);
    assert_int_equal(lost, 0);
    continue_daemon();
    free(in);
    shuf_close(handle);
}

/* The lease of a connection that a timeout closed: the message does not say that the daemon is
 * gone, and no event reports a loss. */
static void lease_ends_by_timeout(void **state)
{
    (void)state;
    static const shuf_records records = {.n = 1000, .record = 4, .seed = 7};
    shuf *handle = open_with_timeout(ENOUGH_MS);
    shuf_lease *buffer = NULL, *shuffled = NULL;
    unsigned lost = 0;
    client_expect(handle, take_buffer(handle, 4000, NULL, &buffer), SHUF_OK, "");
    shuf_set_timeout(handle, TIMEOUT_MS);
    shuf_set_observer(handle, client_count_lost, &lost);
    stop_daemon();
    client_expect(handle, shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_TIMEOUT, "");
    client_expect(handle, shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_TIMEOUT, "");
    continue_daemon();
    shuf_set_timeout(handle, ENOUGH_MS);
    for (int i = 0; i < 2; i++) {
        client_expect(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled),
                      SHUF_NO_DAEMON, "a timeout closed the connection that held the buffer");
        assert_true(client_check(handle, &small));
    }
    assert_int_equal(lost, 0);
    shuf_close(handle);
}

static void connect_to_hung_daemon_is_an_error(void **state)
{
    (void)state;
    shuf *handle;
    stop_daemon();
    const uint64_t begin = harness_now_ms();
    const shuf_status status = shuf_connect_within(&handle, harness_shared.socket, TIMEOUT_MS);
    client_expect(handle, status, SHUF_TIMEOUT, "for 300 ms while a reply was expected; it hangs");
    expect_in_time(begin);
    client_expect(handle, shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_TIMEOUT,
                  "for 300 ms"); /* the handle keeps the timeout of the connection */
    shuf_close(handle);
    continue_daemon();
    assert_int_equal(shuf_connect_within(&handle, harness_shared.socket, ENOUGH_MS), SHUF_OK);
    assert_true(client_check(handle, &small));
    shuf_close(handle);
}

static void shuffle_is_not_repeated(void **state)
{
    (void)state;
    shuf *handle = open_with_timeout(TIMEOUT_MS);
    static const shuf_records records = {.n = 100, .record = 8};
    uint64_t in[100] = {0}, out[100];
    stop_daemon();
    const uint64_t begin = harness_now_ms();
    client_expect(handle, shuf_shuffle(handle, &records, in, out, sizeof in, NULL), SHUF_TIMEOUT,
                  "did nothing");
    expect_in_time(begin);
    continue_daemon();
    shuf_close(handle);
}

static void handle_signal(int number)
{
    (void)number;
}

/* A timer interrupts the wait repeatedly. The wait still ends at the timeout. */
static void signals_do_not_extend_timeout(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = handle_signal};
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    shuf *handle = open_with_timeout(TIMEOUT_MS);
    sigaction(SIGALRM, &action, NULL);
    stop_daemon();
    const uint64_t begin = harness_now_ms();
    setitimer(ITIMER_REAL, &often, NULL);
    client_expect(handle, shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_TIMEOUT,
                  "did nothing");
    setitimer(ITIMER_REAL, &never, NULL);
    expect_in_time(begin);
    continue_daemon();
    shuf_close(handle);
}

/* A handle without a timeout waits, even if it had a timeout before. */
static void no_timeout_by_default(void **state)
{
    (void)state;
    for (int removed = 0; removed <= 1; removed++) {
        int status;
        shuf *handle = removed ? open_with_timeout(ENOUGH_MS) : client_open();
        assert_int_equal(shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_OK);
        shuf_set_timeout(handle, 0);
        stop_daemon();
        const pid_t child = continue_daemon_after(4 * TIMEOUT_MS);
        assert_int_equal(shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_OK);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        shuf_close(handle);
    }
}

/* The timeout also limits the wait for the next daemon. */
static void timeout_limits_reconnecting(void **state)
{
    (void)state;
    shuf *handle = open_with_timeout(TIMEOUT_MS);
    harness_kill(&harness_shared, SIGKILL);
    const uint64_t begin = harness_now_ms();
    client_expect(handle, shuf_summarize(handle, &small, &(shuf_result){0}), SHUF_NO_DAEMON,
                  "no other came within 0.300 s");
    expect_in_time(begin);
    assert_true(harness_restart(&harness_shared));
    shuf_set_timeout(handle, ENOUGH_MS);
    assert_true(client_check(handle, &small));
    shuf_close(handle);
}

/* ---- shuf_cancel() ---- */

static const char words[] = "handle: another thread cancelled its calls";

struct call {
    shuf *handle;
    const char *algorithm;
    shuf_status status;
    pthread_t thread;
};

static void *summarize_large(void *context)
{
    struct call *call = context;
    const shuf_request large = {.permutation = {.algorithm = call->algorithm,
                                                .n = (uint64_t)1 << (TEST_SANITIZED ? 40 : 44)}};
    shuf_result result;
    call->status = shuf_summarize(call->handle, &large, &result);
    return NULL;
}

static struct call start_call(const char *algorithm)
{
    return (struct call){.handle = client_open(), .algorithm = algorithm};
}

static void cancel_and_join(struct call *call)
{
    shuf_cancel(call->handle);
    assert_int_equal(pthread_join(call->thread, NULL), 0);
    client_expect(call->handle, call->status, SHUF_CANCELLED, words);
}

static void await_jobs(uint64_t jobs)
{
    shuf *handle = client_open();
    shuf_daemon status = {.queued = 0};
    for (int waited = 0; waited == 0 || status.queued != jobs; waited++) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(1000);
        assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    }
    shuf_close(handle);
}

static void cancellation_ends_call_and_job(void **state)
{
    static const char *const algorithms[] = {"primefold", "philox24", "lcg"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct call call = start_call(algorithms[i]);
        assert_int_equal(pthread_create(&call.thread, NULL, summarize_large, &call), 0);
        await_jobs(1);
        cancel_and_join(&call);
        await_jobs(0);
        shuf_close(call.handle);
    }
}

static void later_calls_fail(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    uint32_t out[1000];
    assert_int_equal(shuf_lease_take(handle, &small, NULL, &lease), SHUF_OK);
    shuf_cancel(handle);
    for (int i = 0; i < 2; i++)
        client_expect(handle, shuf_copy(handle, &small, out, sizeof out, NULL), SHUF_CANCELLED,
                      words);
    assert_true(((const uint32_t *)lease->data)[0] < small.permutation.n); /* still mapped */
    client_expect(handle, shuf_lease_release(handle, &lease), SHUF_OK, "");
    shuf_cancel(handle);
    shuf_close(handle);
}

static void release_after_cancellation_is_no_error(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &small, NULL, &lease), SHUF_OK);
    shuf_cancel(handle);
    client_expect(handle, shuf_lease_release(handle, &lease), SHUF_OK, "");
    shuf_close(handle);
}

static void note_loss(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)done;
    (void)all;
    if (event == SHUF_EVENT_LOST)
        assert_int_equal(write(*(int *)context, "", 1), 1);
}

static void cancellation_ends_wait_for_daemon(void **state)
{
    (void)state;
    struct call call = start_call("primefold");
    int channel[2];
    char byte;
    assert_int_equal(pipe(channel), 0);
    shuf_set_reconnect(call.handle, 3600000);
    shuf_set_observer(call.handle, note_loss, &channel[1]);
    assert_int_equal(pthread_create(&call.thread, NULL, summarize_large, &call), 0);
    await_jobs(1);
    harness_kill(&harness_shared, SIGKILL);
    assert_int_equal(read(channel[0], &byte, 1), 1);
    cancel_and_join(&call);
    assert_true(harness_restart(&harness_shared));
    shuf_close(call.handle);
    close(channel[0]);
    close(channel[1]);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hung_daemon_is_an_error),
        cmocka_unit_test(release_at_hung_daemon_is_an_error),
        cmocka_unit_test(daemon_hangs_during_values),
        cmocka_unit_test(lease_ends_by_timeout),
        cmocka_unit_test(connect_to_hung_daemon_is_an_error),
        cmocka_unit_test(shuffle_is_not_repeated),
        cmocka_unit_test(large_shuffle_is_not_repeated),
        cmocka_unit_test(signals_do_not_extend_timeout),
        cmocka_unit_test(no_timeout_by_default),
        cmocka_unit_test(timeout_limits_reconnecting),
        cmocka_unit_test(cancellation_ends_call_and_job),
        cmocka_unit_test(later_calls_fail),
        cmocka_unit_test(release_after_cancellation_is_no_error),
        cmocka_unit_test(cancellation_ends_wait_for_daemon),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
