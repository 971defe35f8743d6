/* SPDX-License-Identifier: MIT
 *
 * `shufctl shuffle` when its daemon dies while it has the array, and no other daemon starts.
 */
#include "shufctl.h"

#include "shuf.h"
#include "support/cmocka_all.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 20 };

/* Stops shufctl while the daemon has its buffer. The buffer ends when shufctl has received the
 * shuffled array. Returns false if that was earlier. */
static bool stop_with_buffer(shuf *handle, pid_t pid)
{
    shuf_daemon status = {.buffers = 0};
    for (int waited = 0; status.buffers == 0; waited++) {
        if (waited == 1000)
            return false; /* the buffer has ended already */
        usleep(1000);
        assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    }
    kill(pid, SIGSTOP);
    assert_int_equal(shuf_daemon_status(handle, &status), SHUF_OK);
    return status.buffers > 0;
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

static void no_other_comes(void **state)
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
    assert_int_equal(shufctl_files(), access(shufctl_path("out"), F_OK) == 0);
    if (shufctl_files() > 0) /* from an earlier try */
        shufctl_remove("out");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_comes),
    };
    shufctl_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
