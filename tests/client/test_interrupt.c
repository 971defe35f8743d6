/* SPDX-License-Identifier: MIT
 *
 * A signal ends a call, if the function of shuf_set_interrupt() says so: a call that waits for a
 * stopped daemon, for the handshake, or for a daemon that was lost, and a call that copies values.
 * Without it the calls would last until the daemon continues, or until all values are copied.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/sanitized.h"
#include "support/take.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static const shuf_request request = {.permutation = {.n = 1000, .seed = 7}};
static uint32_t out[1000];
static const char text[] = "the function of shuf_set_interrupt() ended the call";
static atomic_int asked;
static volatile sig_atomic_t signalled;

static void note_signal(int number)
{
    (void)number;
    signalled = 1;
}

static bool end_call(void)
{
    asked++;
    return signalled;
}

/* Ends the first wait of the call, and lets the daemon continue. Does not end another wait of the
 * same call. */
static bool end_first_wait(void)
{
    if (asked == 1)
        kill(harness_shared.pid, SIGCONT);
    return asked++ == 1;
}

/* Lets the call wait on, and lets the daemon continue after some signals. */
static bool wait_on(void)
{
    if (++asked == 3)
        kill(harness_shared.pid, SIGCONT);
    return false;
}

/* Sends signals to the thread of the test until they are stopped. So none comes too early. */
struct signals {
    pthread_t target, sender;
    atomic_bool stop;
};

static void *send_signals(void *context)
{
    struct signals *signals = context;
    for (; !signals->stop; usleep(10000))
        pthread_kill(signals->target, SIGUSR1);
    return NULL;
}

static void begin_signals(struct signals *signals, shuf_interrupt interrupt)
{
    const struct sigaction action = {.sa_handler = note_signal};
    *signals = (struct signals){.target = pthread_self()};
    asked = 0;
    signalled = 0;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    shuf_set_interrupt(interrupt);
    assert_int_equal(pthread_create(&signals->sender, NULL, send_signals, signals), 0);
}

static void end_signals(struct signals *signals)
{
    signals->stop = true;
    assert_int_equal(pthread_join(signals->sender, NULL), 0);
    shuf_set_interrupt(NULL);
    assert_true(asked >= 1);
}

static void signal_ends_wait_for_reply(void **state)
{
    (void)state;
    struct signals signals;
    const shuf_records records = {.n = 1000, .record = 4};
    shuf *handle = client_open();
    shuf_lease *lease = NULL, *shuffled = NULL;
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    kill(harness_shared.pid, SIGSTOP);
    begin_signals(&signals, end_first_wait);
    const shuf_status status = shuf_copy(handle, &request, out, sizeof out, NULL);
    end_signals(&signals);
    kill(harness_shared.pid, SIGCONT);
    client_expect(handle, status, SHUF_CANCELLED, text);
    assert_true(((const uint32_t *)lease->data)[0] < request.permutation.n); /* still mapped */
    assert_true(client_check(handle, &request));
    client_expect(handle, take_shuffle(handle, &records, lease, NULL, &shuffled), SHUF_NO_DAEMON,
                  "a signal that ended a call closed the connection that held");
    client_expect(handle, shuf_lease_release(handle, &lease), SHUF_OK, "");
    shuf_close(handle);
}

static void signal_ends_handshake(void **state)
{
    (void)state;
    struct signals signals;
    shuf *handle;
    kill(harness_shared.pid, SIGSTOP);
    begin_signals(&signals, end_call);
    const shuf_status status = shuf_connect(&handle, harness_shared.socket);
    end_signals(&signals);
    kill(harness_shared.pid, SIGCONT);
    client_expect(handle, status, SHUF_CANCELLED, text);
    assert_true(client_check(handle, &request));
    shuf_close(handle);
}

static void signal_ends_wait_for_daemon(void **state)
{
    (void)state;
    struct signals signals;
    shuf *handle = client_open();
    shuf_set_reconnect(handle, 3600000);
    harness_kill(&harness_shared, SIGKILL);
    begin_signals(&signals, end_call);
    const shuf_status status = shuf_copy(handle, &request, out, sizeof out, NULL);
    end_signals(&signals);
    client_expect(handle, status, SHUF_CANCELLED, text);
    assert_true(harness_restart(&harness_shared));
    assert_true(client_check(handle, &request));
    shuf_close(handle);
}

/* The call first asks the daemon whether parts are faster. */
static void signal_ends_call_in_parts(void **state)
{
    (void)state;
    const shuf_request large = {.permutation = {.n = 40000000, .seed = 7}};
    const size_t bytes = large.permutation.n * sizeof(uint32_t);
    struct signals signals;
    shuf *handle = client_open();
    void *values = malloc(bytes);
    assert_non_null(values);
    kill(harness_shared.pid, SIGSTOP);
    begin_signals(&signals, end_first_wait);
    const shuf_status status = shuf_copy(handle, &large, values, bytes, NULL);
    end_signals(&signals);
    client_expect(handle, status, SHUF_CANCELLED, text);
    free(values);
    shuf_close(handle);
}

static void call_waits_on(void **state)
{
    (void)state;
    struct signals signals;
    shuf *handle = client_open();
    kill(harness_shared.pid, SIGSTOP);
    begin_signals(&signals, wait_on);
    const shuf_status status = shuf_copy(handle, &request, out, sizeof out, NULL);
    end_signals(&signals);
    client_expect(handle, status, SHUF_OK, "");
    assert_true(asked >= 3);
    shuf_close(handle);
}

/* ---- Signals that interrupt no wait: the tests set the flag of the handler themselves ---- */

static bool end_by_flag(void)
{
    return signalled;
}

static void begin_flag(void)
{
    signalled = 0;
    shuf_set_interrupt(end_by_flag);
}

static void expect_interrupted(shuf *handle, shuf_status status)
{
    signalled = 0;
    shuf_set_interrupt(NULL);
    client_expect(handle, status, SHUF_CANCELLED, text);
    assert_true(client_check(handle, &request));
}

/* Every call fails at its start, and the connection stays. */
static void signal_before_call_ends_it(void **state)
{
    (void)state;
    shuf *handle = client_open(), *other;
    shuf_lease *lease = NULL;
    shuf_result result;
    shuf_daemon status;
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    begin_flag();
    signalled = 1;
    client_expect(handle, shuf_copy(handle, &request, out, sizeof out, NULL), SHUF_CANCELLED, text);
    client_expect(handle, shuf_summarize(handle, &request, &result), SHUF_CANCELLED, text);
    client_expect(handle, shuf_daemon_status(handle, &status), SHUF_CANCELLED, text);
    const shuf_status connected = shuf_connect(&other, harness_shared.socket);
    client_expect(handle, shuf_lease_release(handle, &lease), SHUF_OK, ""); /* is not asked */
    expect_interrupted(other, connected);
    shuf_close(other);
    assert_true(client_check(handle, &request));
    shuf_close(handle);
}

/* The signal comes after the question at the start of the call, and before the wait. */
static bool end_second(void)
{
    return asked++ > 0;
}

static void signal_just_before_wait_ends_it(void **state)
{
    (void)state;
    shuf *handle = client_open(), *other;
    kill(harness_shared.pid, SIGSTOP);
    asked = 0;
    shuf_set_interrupt(end_second);
    const shuf_status status = shuf_copy(handle, &request, out, sizeof out, NULL);
    asked = 0;
    const shuf_status connected = shuf_connect(&other, harness_shared.socket);
    kill(harness_shared.pid, SIGCONT);
    expect_interrupted(handle, status);
    expect_interrupted(other, connected);
    shuf_close(other);
    shuf_close(handle);
}

/* Without a signal, a call may wait for longer than the pauses between the questions. */
static bool never_end(void)
{
    if (asked++ == 4)
        kill(harness_shared.pid, SIGCONT);
    return false;
}

static void questions_do_not_end_a_wait(void **state)
{
    (void)state;
    shuf *handle = client_open();
    asked = 0;
    kill(harness_shared.pid, SIGSTOP);
    shuf_set_interrupt(never_end);
    const shuf_status status = shuf_copy(handle, &request, out, sizeof out, NULL);
    shuf_set_interrupt(NULL);
    client_expect(handle, status, SHUF_OK, "");
    assert_true(asked > 4);
    shuf_close(handle);
}

/* With the timeout, a wait ends in time although the questions divide it. */
static bool note_question(void)
{
    asked++;
    return false;
}

static void timeout_ends_wait_with_questions(void **state)
{
    (void)state;
    shuf *handle = client_open();
    asked = 0;
    shuf_set_timeout(handle, 3000);
    kill(harness_shared.pid, SIGSTOP);
    shuf_set_interrupt(note_question);
    const shuf_status status = shuf_copy(handle, &request, out, sizeof out, NULL);
    shuf_set_interrupt(NULL);
    kill(harness_shared.pid, SIGCONT);
    client_expect(handle, status, SHUF_TIMEOUT, "did nothing for 3000 ms");
    assert_in_range(asked, 2, 60);
    shuf_close(handle);
}

enum { LARGE_N = 60000000 };
static const shuf_request large = {.permutation = {.n = LARGE_N, .seed = 7}};

static bool signal_in_sink(void *context, const void *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)context += size;
    signalled = 1;
    return true;
}

static void signal_in_sink_ends_transfer(void **state)
{
    (void)state;
    const shuf_request whole = {.permutation = {.n = 4000000, .seed = 7}}; /* comes in one part */
    const shuf_request *requests[] = {&whole, &large};
    for (int i = 0; i < 2; i++) {
        shuf *handle = client_open();
        size_t bytes = 0;
        begin_flag();
        const shuf_status status = shuf_each(handle, requests[i], signal_in_sink, &bytes, NULL);
        expect_interrupted(handle, status);
        assert_in_range(bytes, 1, 256 * 1024);
        shuf_close(handle);
    }
}

static void signal_at_first_progress(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)all;
    if (event != SHUF_EVENT_PART || signalled)
        return;
    *(uint64_t *)context = done;
    signalled = 1;
}

static void signal_ends_copy(void **state)
{
    (void)state;
    const size_t bytes = large.permutation.n * sizeof(uint32_t);
    void *values = malloc(bytes);
    shuf *handle = client_open();
    uint64_t done = 0;
    assert_non_null(values);
    shuf_set_observer(handle, signal_at_first_progress, &done);
    begin_flag();
    const shuf_status status = shuf_copy(handle, &large, values, bytes, NULL);
    assert_in_range(done, 1, bytes - 1);
    expect_interrupted(handle, status);
    free(values);
    shuf_close(handle);
}

/* The leases of the call end, and those of the caller stay. */
static int question_to_end;

static bool end_at_question(void)
{
    return asked++ == question_to_end;
}

static shuf_status interrupt_shuffle(shuf *handle, char *records, size_t bytes)
{
    const shuf_records shuffled = {.n = bytes / 8, .record = 8, .seed = 7};
    asked = 0;
    shuf_set_interrupt(end_at_question);
    const shuf_status status =
        shuf_shuffle(handle, &shuffled, records, records + bytes, bytes, NULL);
    shuf_set_interrupt(NULL);
    return status;
}

static void signal_at_any_question_ends_shuffle(void **state)
{
    (void)state;
    const size_t bytes = 150 << 20;
    char *records = calloc(2, bytes);
    shuf *handle = client_open();
    assert_non_null(records);
    question_to_end = 0;
    for (shuf_status status = SHUF_CANCELLED; status != SHUF_OK;) {
        status = interrupt_shuffle(handle, records, bytes);
        if (status != SHUF_OK)
            expect_interrupted(handle, status);
        /* With a sanitizer, the calls are slow and ask often. */
        question_to_end += 1 + (TEST_SANITIZED ? question_to_end / 2 : 0);
    }
    assert_true(question_to_end > 5); /* the copies ask too */
    shuf_close(handle);
    free(records);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signal_ends_wait_for_reply),
        cmocka_unit_test(signal_ends_handshake),
        cmocka_unit_test(signal_ends_wait_for_daemon),
        cmocka_unit_test(signal_ends_call_in_parts),
        cmocka_unit_test(call_waits_on),
        cmocka_unit_test(signal_before_call_ends_it),
        cmocka_unit_test(signal_just_before_wait_ends_it),
        cmocka_unit_test(questions_do_not_end_a_wait),
        cmocka_unit_test(timeout_ends_wait_with_questions),
        cmocka_unit_test(signal_in_sink_ends_transfer),
        cmocka_unit_test(signal_ends_copy),
        cmocka_unit_test(signal_at_any_question_ends_shuffle),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
