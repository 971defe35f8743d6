/* SPDX-License-Identifier: MIT
 *
 * shuf_cancel() ends the call of another thread: one that computes in the daemon, and one that
 * waits for a lost daemon. Without it the calls would last for minutes or hours.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/sanitized.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static const shuf_request small = {.permutation = {.n = 1000, .seed = 7}};
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
        cmocka_unit_test(cancellation_ends_call_and_job),
        cmocka_unit_test(later_calls_fail),
        cmocka_unit_test(release_after_cancellation_is_no_error),
        cmocka_unit_test(cancellation_ends_wait_for_daemon),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
