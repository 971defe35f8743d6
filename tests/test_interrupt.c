/* SPDX-License-Identifier: MIT
 *
 * A signal ends a call that waits, if the function of shuf_set_interrupt() says so: for a stopped
 * daemon, for the handshake, and for a daemon that was lost. Without it the calls would last until
 * the daemon continues.
 */
#include "support/client.h"
#include "support/cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static const shuf_permutation request = {.n = 1000, .seed = 7};
static uint32_t out[1000];
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

/* Ends the call, and lets the daemon continue. Does not end another wait of the same call. */
static bool end_once(void)
{
    kill(harness_shared.pid, SIGCONT);
    return asked++ == 0;
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
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    kill(harness_shared.pid, SIGSTOP);
    begin_signals(&signals, end_call);
    const shuf_status status = shuf_permute(handle, &request, out, sizeof out, NULL);
    end_signals(&signals);
    kill(harness_shared.pid, SIGCONT);
    client_expect(handle, status, SHUF_CANCELLED, "Interrupted system call while a reply");
    assert_true(((const uint32_t *)lease->data)[0] < request.n); /* still mapped */
    assert_true(client_check(handle, &request));
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
    client_expect(handle, status, SHUF_CANCELLED, "Interrupted system call");
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
    const shuf_status status = shuf_permute(handle, &request, out, sizeof out, NULL);
    end_signals(&signals);
    client_expect(handle, status, SHUF_CANCELLED, "a signal ended the wait for the daemon");
    assert_true(harness_restart(&harness_shared));
    assert_true(client_check(handle, &request));
    shuf_close(handle);
}

/* The call first asks the daemon whether parts are faster. */
static void signal_ends_call_in_parts(void **state)
{
    (void)state;
    const shuf_permutation large = {.n = 40000000, .seed = 7};
    const size_t bytes = large.n * sizeof(uint32_t);
    struct signals signals;
    shuf *handle = client_open();
    void *values = malloc(bytes);
    assert_non_null(values);
    kill(harness_shared.pid, SIGSTOP);
    begin_signals(&signals, end_once);
    const shuf_status status = shuf_permute(handle, &large, values, bytes, NULL);
    end_signals(&signals);
    client_expect(handle, status, SHUF_CANCELLED, "Interrupted system call while a reply");
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
    const shuf_status status = shuf_permute(handle, &request, out, sizeof out, NULL);
    end_signals(&signals);
    client_expect(handle, status, SHUF_OK, "");
    assert_true(asked >= 3);
    shuf_close(handle);
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
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
