/* SPDX-License-Identifier: MIT
 *
 * libshuf with real daemons that are killed while they send, on the backend of the command line.
 * The values arrive complete, in memory and in a sink, even if the sink is slow or stops. If no
 * other daemon starts, a call waits for the reconnect time once. The limits on times are wide,
 * because a machine may be slow.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/random.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A sink that collects bytes. At given positions it waits, stops, or kills the daemon. */
struct collector {
    uint8_t *bytes;
    size_t size, largest;
    size_t stop_at; /* 0: never */
    unsigned calls, slow_calls;
    size_t kill_at[4]; /* ascending positions; 0: no more */
    unsigned kills;
};

static bool collect(void *context, const void *bytes, size_t size)
{
    struct collector *c = context;
    memcpy(c->bytes + c->size, bytes, size);
    c->size += size;
    c->largest = size > c->largest ? size : c->largest;
    if (c->calls++ < c->slow_calls)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (c->kill_at[c->kills] != 0 && c->size >= c->kill_at[c->kills]) {
        c->kills++;
        harness_kill(&harness_shared, SIGKILL);
        return harness_restart(&harness_shared);
    }
    return c->stop_at == 0 || c->size < c->stop_at;
}

static const shuf_request streamed = {.permutation = {.n = 1000003, .seed = 7, .dtype = SHUF_U64}};
enum { STREAMED_BYTES = 1000003 * 8 };

static void slow_sink_gets_all_bytes(void **state)
{
    (void)state;
    shuf *handle = client_open();
    uint64_t count, *values = expected_values(&streamed, &count);
    struct collector c = {.bytes = malloc(STREAMED_BYTES), .slow_calls = 10};
    assert_int_equal(shuf_each(handle, &streamed, collect, &c, NULL), SHUF_OK);
    assert_int_equal(c.size, STREAMED_BYTES);
    assert_true(c.largest <= 256 * 1024);
    assert_true(expected_equal(values, c.bytes, 8, count));
    free(c.bytes);
    free(values);
    shuf_close(handle);
}

static void sink_cancels_permute_each(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_request small = {.permutation = {.n = 10}};
    struct collector c = {.bytes = malloc(STREAMED_BYTES), .stop_at = 1000000};
    client_expect(handle, shuf_each(handle, &streamed, collect, &c, NULL), SHUF_CANCELLED,
                  "of 8000024 bytes");
    assert_true(c.size >= c.stop_at && c.size < STREAMED_BYTES);
    assert_true(client_check(handle, &small));
    free(c.bytes);
    shuf_close(handle);
}

/* Each byte arrives once and in order, although four daemons sent parts of the result. */
static void permute_each_continues_after_killed_daemons(void **state)
{
    (void)state;
    shuf *handle = client_open();
    uint64_t count, *values = expected_values(&streamed, &count);
    struct collector c = {.bytes = malloc(STREAMED_BYTES), .kill_at = {1, 3000001, 5000000}};
    shuf_result result;
    assert_int_equal(shuf_each(handle, &streamed, collect, &c, &result), SHUF_OK);
    assert_int_equal(c.kills, 3);
    assert_int_equal(c.size, STREAMED_BYTES);
    assert_true(expected_equal(values, c.bytes, 8, count));
    assert_string_equal(result.backend, harness_backend);
    free(c.bytes);
    free(values);
    shuf_close(handle);
}

/* Runs in a child: sends requests until the parent stops it, and checks every reply. */
static int request_until(int stop_fd)
{
    static const shuf_request request = {.permutation = {.n = 2000003, .seed = 3, .epoch = 5}};
    uint64_t count, *values = expected_values(&request, &count);
    uint32_t *out = malloc(count * sizeof *out);
    shuf *handle;
    char byte;
    /* If there is no daemon yet, the next call connects. */
    shuf_connect(&handle, harness_shared.socket);
    shuf_set_reconnect(handle, 60000);
    do {
        memset(out, 0xff, count * sizeof *out);
        if (shuf_copy(handle, &request, out, count * sizeof *out, NULL) != SHUF_OK) {
            fprintf(stderr, "%s\n", shuf_message(handle));
            return 1;
        }
        if (!expected_equal(values, out, 4, count))
            return 2;
    } while (read(stop_fd, &byte, 1) < 0);
    shuf_close(handle);
    free(values);
    free(out);
    return 0;
}

static void permute_continues_after_killed_daemons(void **state)
{
    (void)state;
    int stop[2], status;
    assert_int_equal(pipe2(stop, O_CLOEXEC | O_NONBLOCK), 0);
    pid_t child = fork();
    if (child == 0) {
        close(stop[1]);
        _exit(request_until(stop[0]));
    }
    close(stop[0]);
    random_start("permute_continues_after_killed_daemons");
    for (int i = 0; i < 8; i++) {
        nanosleep(&(struct timespec){.tv_nsec = (long)random_below(100) * 1000000}, NULL);
        harness_kill(&harness_shared, SIGKILL);
        assert_true(harness_restart(&harness_shared));
    }
    close(stop[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void loss_without_reconnecting_is_an_error(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_request request = {.permutation = {.n = 10}};
    shuf_daemon status;
    shuf_set_reconnect(handle, 0);
    harness_kill(&harness_shared, SIGKILL);
    client_expect(handle, shuf_daemon_status(handle, &status), SHUF_NO_DAEMON,
                  harness_shared.socket);
    shuf_set_reconnect(handle, 100);
    client_expect(handle, shuf_daemon_status(handle, &status), SHUF_NO_DAEMON,
                  harness_shared.socket);
    assert_true(harness_restart(&harness_shared));
    assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    harness_kill(&harness_shared, SIGKILL);
    client_expect(handle, shuf_daemon_status(handle, &status), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 0.100 s");
    assert_true(harness_restart(&harness_shared));
    shuf_set_reconnect(handle, 0);
    assert_true(client_check(handle, &request));
    shuf_close(handle);
}

/* Opens the socket to all users after this time, from another process. */
static pid_t open_to_all_later(unsigned us)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep(us);
        _exit(chmod(harness_shared.socket, 0666) != 0);
    }
    return child;
}

/* A service manager makes the socket, but gives it to its group only a moment later. The client
 * retries in between. */
static void client_retries_at_closed_socket(void **state)
{
    enum { USER = 61000 };
    (void)state;
    shuf_daemon status;
    int ended;
    if (geteuid() != 0) /* only root can become another user */
        skip();
    assert_int_equal(chmod(harness_shared.directory, 0755), 0);
    shuf *handle = client_open();
    harness_kill(&harness_shared, SIGKILL);
    assert_true(harness_restart(&harness_shared));
    const pid_t opener = open_to_all_later(300000);
    assert_int_equal(seteuid(USER), 0);
    client_expect(handle, shuf_daemon_status(handle, &status), SHUF_OK, "");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(waitpid(opener, &ended, 0), opener);
    assert_int_equal(ended, 0);
    assert_int_equal(chmod(harness_shared.socket, 0600), 0);
    shuf_close(handle);
    /* no daemon was lost, so the call does not wait for the reconnect time */
    assert_int_equal(seteuid(USER), 0);
    assert_int_equal(shuf_connect(&handle, harness_shared.socket), SHUF_DENIED);
    assert_int_equal(seteuid(0), 0);
    shuf_close(handle);
}

/* ---- No other daemon starts ---- */

enum { RECONNECT_MS = 8000, TWICE_MS = 2 * RECONNECT_MS, LARGE = 60 << 20 };

#define TRIED_ONCE                                                                                \
    "no daemon answers (Connection refused); the call tried once, because an earlier one waited " \
    "in vain"

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
    const uint64_t begin = harness_now_ms();
    const pid_t killer = kill_later(200000);
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 8.000 s");
    assert_in_range(harness_now_ms() - begin, RECONNECT_MS, TWICE_MS);
    await_killer(killer);
    client_expect(handle, shuf_set_reconnect(handle, 0), SHUF_OK, "");
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, "no daemon answers");
    shuf_close(handle);
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
    shuf_set_observer(handle, client_count_lost, &lost);
    shuf_set_observer(unconnected, client_count_lost, &unconnected_lost);
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 8.000 s");
    client_expect(unconnected, shuffle_once(unconnected, 4096), SHUF_NO_DAEMON,
                  "; the call tried for 0.200 s");
    const uint64_t begin = harness_now_ms();
    for (int i = 0; i < 2; i++) {
        client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON, TRIED_ONCE);
        client_expect(unconnected, shuffle_once(unconnected, 4096), SHUF_NO_DAEMON, TRIED_ONCE);
    }
    assert_in_range(harness_now_ms() - begin, 0, RECONNECT_MS - 1);
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
    const uint64_t begin = harness_now_ms();
    client_expect(handle, shuffle_once(handle, 4096), SHUF_NO_DAEMON,
                  "the daemon was lost, and no other came within 8.000 s");
    assert_in_range(harness_now_ms() - begin, 8000, 19000);
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
    const struct CMUnitTest reconnect_tests[] = {
        cmocka_unit_test(slow_sink_gets_all_bytes),
        cmocka_unit_test(sink_cancels_permute_each),
        cmocka_unit_test(permute_each_continues_after_killed_daemons),
        cmocka_unit_test(permute_continues_after_killed_daemons),
        cmocka_unit_test(loss_without_reconnecting_is_an_error),
        cmocka_unit_test(client_retries_at_closed_socket),
    };
    const struct CMUnitTest lost_tests[] = {
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
    return cmocka_run_group_tests(reconnect_tests, harness_start_shared, harness_stop_shared) +
           cmocka_run_group_tests(lost_tests, NULL, NULL);
}
