/* SPDX-License-Identifier: MIT
 *
 * The daemon is killed during a call of shuf_shuffle(), and no other daemon starts. The call waits
 * for the reconnect time once, and reports the loss. The limits on times are wide, because a
 * machine may be slow.
 */
#include "support/client.h"
#include "support/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RECONNECT_MS = 8000, TWICE_MS = 2 * RECONNECT_MS, LARGE = 60 << 20 };

#define TRIED_ONCE                                                                                \
    "no daemon answers (Connection refused); the call tried once, because an earlier one waited " \
    "in vain"

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Kills the daemon after this time, from a child process. */
static pid_t kill_later(unsigned us)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep(us);
        _exit(kill(harness_shared.pid, SIGKILL) != 0);
    }
    return child;
}

static void await_killer(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    harness_kill(&harness_shared, 0);
}

/* It still accepts a request, so its loss comes while the call waits for a reply. */
static void stop_daemon(void)
{
    assert_true(harness_pause(&harness_shared));
}

static shuf_status shuffle_once(shuf *handle, size_t bytes)
{
    char *in = calloc(2, bytes);
    const shuf_records records = {.n = bytes / 8, .record = 8, .seed = 7};
    const shuf_status status = shuf_shuffle(handle, &records, in, in + bytes, bytes, NULL);
    free(in);
    return status;
}

static void loss_waits_one_reconnect_time(void **state)
{
    (void)state;
    shuf *handle = client_open();
    assert_int_equal(shuf_set_reconnect(handle, RECONNECT_MS), SHUF_OK);
    stop_daemon();
    const uint64_t begin = now_ms();
    const pid_t killer = kill_later(200000);
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 8.000 s");
    assert_in_range(now_ms() - begin, RECONNECT_MS, TWICE_MS);
    await_killer(killer);
    client_expect(handle, shuf_set_reconnect(handle, 0), SHUF_OK, "");
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, "no daemon answers");
    shuf_close(handle);
}

static void count_lost(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)done;
    (void)all;
    *(unsigned *)context += event == SHUF_EVENT_LOST;
}

/* The first call without a daemon waits, and later ones try once. Each loss causes one event. If a
 * handle never had a daemon, no event reports a loss. */
static void later_calls_try_once(void **state)
{
    (void)state;
    shuf *handle = client_open(), *unconnected;
    unsigned lost = 0, unconnected_lost = 0;
    harness_kill(&harness_shared, SIGKILL);
    assert_int_equal(shuf_connect(&unconnected, harness_shared.socket), SHUF_NO_DAEMON);
    shuf_set_reconnect(handle, RECONNECT_MS);
    shuf_set_reconnect(unconnected, 200);
    shuf_set_observer(handle, count_lost, &lost);
    shuf_set_observer(unconnected, count_lost, &unconnected_lost);
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 8.000 s");
    client_expect(unconnected, shuffle_once(unconnected, 4096), SHUF_NO_DAEMON,
                  "; the call tried for 0.200 s");
    const uint64_t begin = now_ms();
    for (int i = 0; i < 2; i++) {
        client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, TRIED_ONCE);
        client_expect(unconnected, shuffle_once(unconnected, 4096), SHUF_NO_DAEMON, TRIED_ONCE);
    }
    assert_in_range(now_ms() - begin, 0, RECONNECT_MS - 1);
    assert_int_equal(lost, 1);
    assert_int_equal(unconnected_lost, 0);
    shuf_close(handle);
    shuf_close(unconnected);
}

/* A daemon that answers, or another reconnect time, lets the next call without a daemon wait. */
static void later_calls_wait_again(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_set_reconnect(handle, 200);
    for (int i = 0; i < 2; i++) {
        harness_kill(&harness_shared, SIGKILL);
        client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, "came within 0.200 s");
        client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, TRIED_ONCE);
        assert_true(harness_restart(&harness_shared));
        client_expect(handle, shuffle_once(handle, 4096), SHUF_OK, "");
    }
    harness_kill(&harness_shared, SIGKILL);
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, "came within 0.200 s");
    shuf_set_reconnect(handle, 300);
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, "call tried for 0.300 s");
    shuf_close(handle);
}

/* The timeout is shorter than the reconnect time, so it ends the call. */
static void timeout_ends_wait_for_daemon(void **state)
{
    (void)state;
    shuf *handle = client_open();
    assert_int_equal(shuf_set_timeout(handle, 8000), SHUF_OK);
    assert_int_equal(shuf_set_reconnect(handle, 20000), SHUF_OK);
    stop_daemon();
    const pid_t killer = kill_later(200000);
    const uint64_t begin = now_ms();
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 8.000 s");
    assert_in_range(now_ms() - begin, 8000, 19000);
    await_killer(killer);
    shuf_close(handle);
}

/* The daemon is killed at many points of the call: while the client fills the buffer, while the
 * daemon works, and after the call. */
static void shuffle_survives_kill_at_any_time(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (unsigned us = 0; us < 100000; us = us * 2 + 3000) {
        for (int reconnect = 0; reconnect < 2; reconnect++) {
            if (harness_shared.pid == 0)
                assert_true(harness_restart(&harness_shared));
            shuf *handle = client_open();
            assert_int_equal(shuf_set_reconnect(handle, reconnect ? 300 : 0), SHUF_OK);
            const pid_t killer = kill_later(us);
            const shuf_status status = shuffle_once(handle, LARGE);
            lost += status != SHUF_OK;
            if (status != SHUF_OK)
                client_expect(handle, status, SHUF_NO_DAEMON,
                              reconnect ? "the daemon was lost, and no other came within 0.300 s"
                                        : "the daemon was lost, and no other came within 0.000 s");
            await_killer(killer);
            shuf_close(handle);
        }
    }
    assert_true(lost > 0);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loss_waits_one_reconnect_time, harness_start_shared,
                                        harness_stop_shared),
        cmocka_unit_test_setup_teardown(later_calls_try_once, harness_start_shared,
                                        harness_stop_shared),
        cmocka_unit_test_setup_teardown(later_calls_wait_again, harness_start_shared,
                                        harness_stop_shared),
        cmocka_unit_test_setup_teardown(timeout_ends_wait_for_daemon, harness_start_shared,
                                        harness_stop_shared),
        cmocka_unit_test_setup_teardown(shuffle_survives_kill_at_any_time, harness_start_shared,
                                        harness_stop_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
