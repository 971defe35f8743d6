/* SPDX-License-Identifier: MIT
 *
 * The daemon of shufctl dies and no other daemon starts: `shuffle` while the daemon has the array,
 * and the messages that a user sees in this time.
 */
#include "support/shufctl.h"

#include "shuf.h"
#include "support/cmocka_all.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 20 };

/* Waits until the daemon has no work. A request that shufctl has sent is then answered. */
static void await_idle(shuf *handle, shuf_daemon *status)
{
    do {
        usleep(20000);
        assert_int_equal(shuf_daemon_status(handle, status), SHUF_OK);
    } while (status->queued > 0);
}

/* Stops shufctl while it fills the buffer of its array. Returns false if that was too late. Later
 * the daemon has a lease of the shuffled array too, or nothing. */
static bool stop_with_buffer(shuf *handle, pid_t pid)
{
    shuf_daemon status = {.buffers = 0};
    for (int waited = 0; status.buffers == 0; waited++) {
        if (waited == 1000)
            return false; /* the buffer has already ended */
        usleep(1000);
        assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    }
    kill(pid, SIGSTOP);
    await_idle(handle, &status);
    return status.buffers > 0 && status.leases == 1;
}

static void start_and_stop(struct command *c)
{
    shuf *handle;
    bool stopped = false;
    assert_int_equal(shuf_connect(&handle, shufctl_daemon.socket), SHUF_OK);
    for (int i = 0; i < TRIES && !stopped; i++) {
        shufctl_start(c, 0, "shuffle --in %s --record 100 --seed 7 --out %s", shufctl_path("in"),
                      shufctl_path("out"));
        stopped = stop_with_buffer(handle, c->pid);
        if (stopped)
            continue;
        kill(c->pid, SIGCONT);
        command_finish(c);
        command_free(c);
    }
    assert_true(stopped);
    shuf_close(handle);
}

static void loss_without_next_daemon_is_an_error(void **state)
{
    (void)state;
    struct command c;
    FILE *file = fopen(shufctl_path("in"), "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(truncate(shufctl_path("in"), 100000000), 0);
    start_and_stop(&c);
    const uint64_t begin = (uint64_t)time(NULL);
    harness_kill(&shufctl_daemon, SIGKILL);
    kill(c.pid, SIGCONT);
    command_finish(&c);
    assert_int_equal(c.status, 69);
    assert_non_null(strstr(c.err.bytes, "the daemon was lost; "));
    command_free(&c);
    assert_in_range((uint64_t)time(NULL) - begin, 9, 60); /* shufctl waits 10 s for a daemon */
    assert_true(harness_restart(&shufctl_daemon));
    shufctl_remove("in");
    assert_int_equal(shufctl_count_files(), access(shufctl_path("out"), F_OK) == 0);
    if (shufctl_count_files() > 0) /* an earlier attempt has written the file */
        shufctl_remove("out");
}

/* ---- a daemon that is lost while it computes ---- */

/* Starts shufctl, and stops it when the daemon has a job of it: its next wait is for a reply, or to
 * send. The other commands are stopped, so they have no jobs. */
static void start_and_stop_request(struct command *c, unsigned flags, const char *options)
{
    shuf *handle;
    shuf_daemon status = {.queued = 0};
    assert_int_equal(shuf_connect(&handle, shufctl_daemon.socket), SHUF_OK);
    shufctl_start(c, flags, "permute --n 68e9 --seed 7 %s", options); /* longer than this test */
    for (int waited = 0; status.queued == 0; waited++) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(1000);
        assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    }
    kill(c->pid, SIGSTOP);
    await_idle(handle, &status);
    shuf_close(handle);
}

/* While shufctl waits, it counts the seconds on a terminal. On a pipe it prints one line, and with
 * -q nothing. */
static void wait_for_next_daemon_is_shown(void **state)
{
    (void)state;
    static const char line[] = "shufctl permute: the connection to the daemon is lost; waiting up "
                               "to 10 s for it to come back\n";
    struct command terminal, pipe, quiet;
    start_and_stop_request(&terminal, COMMAND_TERMINAL_ERR, "");
    start_and_stop_request(&pipe, 0, "--epoch 1");
    start_and_stop_request(&quiet, COMMAND_TERMINAL_ERR, "--epoch 2 -q");
    harness_kill(&shufctl_daemon, SIGKILL);
    kill(terminal.pid, SIGCONT);
    kill(pipe.pid, SIGCONT);
    kill(quiet.pid, SIGCONT);
    command_finish(&terminal);
    command_finish(&pipe);
    command_finish(&quiet);
    assert_true(terminal.status == 69 && pipe.status == 69 && quiet.status == 69);
    assert_non_null(strstr(terminal.err.bytes, "is lost; waiting up to 10 s"));
    assert_non_null(strstr(terminal.err.bytes, "waiting for the daemon to come back: "));
    assert_non_null(strstr(terminal.err.bytes, " s of 10 s"));
    assert_memory_equal(pipe.err.bytes, line, strlen(line));
    assert_memory_equal(pipe.err.bytes + strlen(line), "shufctl permute: socket ", 24);
    assert_null(strstr(quiet.err.bytes, "waiting"));
    assert_memory_equal(quiet.err.bytes, "shufctl permute: socket ", 24);
    command_free(&terminal);
    command_free(&pipe);
    command_free(&quiet);
    assert_true(harness_restart(&shufctl_daemon));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_without_next_daemon_is_an_error),
        cmocka_unit_test(wait_for_next_daemon_is_shown),
    };
    shufctl_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
