/* SPDX-License-Identifier: MIT
 *
 * The limit for the end of the daemon. Each test has a child process, which the limit ends.
 */
#include "end_guard.h"

#include "support/cmocka_all.h"
#include "support/harness.h"
#include "support/shufd.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { LEFT = 17, LIMIT_MS = 1000 };

static void leave(void *context)
{
    const int *status = context;
    _exit(*status);
}

static int status_of(void (*child)(void))
{
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        child();
        _exit(EX_OK);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int *new_status(void)
{
    int *status = malloc(sizeof *status);
    if (!status)
        _exit(EX_OSERR);
    *status = LEFT;
    return status;
}

static void hang_before_the_end(void)
{
    shuf__end_guard_start(LIMIT_MS, EX_SOFTWARE, leave, new_status());
    for (;;)
        pause();
}

/* As a library that hangs when the process unloads it. */
static void hang_after_the_end(void)
{
    int *status = new_status();
    shuf__end_guard_start(LIMIT_MS, EX_SOFTWARE, leave, status);
    shuf__end_guard_forget();
    *status = 1;
    free(status);
    for (;;)
        pause();
}

static void end_in_time(void)
{
    shuf__end_guard_start(60000, EX_SOFTWARE, leave, new_status());
    shuf__end_guard_forget();
}

static void end_without_a_guard(void)
{
    shuf__end_guard_forget();
}

static void process_leaves_after_the_limit(void **state)
{
    (void)state;
    assert_int_equal(status_of(hang_before_the_end), LEFT);
}

static void forgotten_context_is_not_used(void **state)
{
    (void)state;
    assert_int_equal(status_of(hang_after_the_end), EX_SOFTWARE);
}

static void process_that_ends_in_time_does_not_notice(void **state)
{
    (void)state;
    assert_int_equal(status_of(end_in_time), EX_OK);
    assert_int_equal(status_of(end_without_a_guard), EX_OK);
}

/* A program that starts now hangs at the place. Skips the test with a sanitizer, which must be the
 * first library of a process. */
static void let_hang_at(const char *place)
{
    const char *library = getenv("SHUF_HANG_LIBRARY");
    if (!library)
        skip();
    assert_int_equal(setenv("LD_PRELOAD", library, 1), 0);
    assert_int_equal(setenv("SHUF_HANG", place, 1), 0);
}

static void let_nothing_hang(void)
{
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
}

/* Stops the daemon, and expects the text in the log after `after`. */
static void expect_leaving(struct harness *h, const char *after, const char *text)
{
    char log[8192] = "";
    const int status = harness_kill(h, SIGTERM);
    shufd_read(h->log, log, sizeof log);
    harness_stop(h);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_SOFTWARE);
    const char *ended = strstr(log, after);
    assert_non_null(ended);
    assert_non_null(strstr(ended, text));
}

/* The daemon's own use of the limit. */
static void daemon_leaves_a_library_that_hangs(void **state)
{
    struct harness h;
    (void)state;
    let_hang_at("end");
    const bool started = harness_start(&h, "cpu", NULL);
    let_nothing_hang();
    assert_true(started);
    expect_leaving(&h, "ended, 0 results served", "shufd: a library does not end with the process");
}

/* The file of metrics on a disk that does not answer. Clients notice nothing. */
static void daemon_reports_and_leaves_a_disk_that_hangs(void **state)
{
    struct harness h;
    char log[8192] = "", text[96];
    char directory[] = "/tmp/shuf-hang-XXXXXX", temporary[64];
    (void)state;
    let_hang_at("file");
    assert_non_null(mkdtemp(directory));
    snprintf(text, sizeof text, "metrics_file = %s/m.prom\nmetrics_interval = 100ms\n", directory);
    wire_start(&h, "cpu", text);
    let_nothing_hang();
    shufd_await(h.log, log, sizeof log, "/m.prom: the last write has not ended");
    expect_leaving(&h, "draining", "/m.prom: the last write has not ended; leaving without it");
    snprintf(temporary, sizeof temporary, "%s/m.prom.tmp", directory);
    assert_int_equal(unlink(temporary), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* With the exit code of the failure, on which the service manager decides. */
static void daemon_that_cannot_start_leaves_a_library_that_hangs(void **state)
{
    (void)state;
    let_hang_at("end");
    shufd_expect_exit(
        (const char *const[]){"--no-config", "--socket", "/tmp/none", "--backend", "abacus", NULL},
        EX_USAGE, "shufd: a library does not end with the process");
    shufd_expect_exit((const char *const[]){"--no-config", "--socket", "/nonexistent/s", NULL},
                      EX_CANTCREAT, "shufd: a library does not end with the process");
    shufd_expect_exit((const char *const[]){"--no-config", "--socket", "/tmp/none", "--backend",
                                            "cpu", "--check", NULL},
                      EX_OK, "shufd: a library does not end with the process");
    let_nothing_hang();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_leaves_after_the_limit),
        cmocka_unit_test(forgotten_context_is_not_used),
        cmocka_unit_test(process_that_ends_in_time_does_not_notice),
        cmocka_unit_test(daemon_leaves_a_library_that_hangs),
        cmocka_unit_test(daemon_reports_and_leaves_a_disk_that_hangs),
        cmocka_unit_test(daemon_that_cannot_start_leaves_a_library_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
