/* SPDX-License-Identifier: MIT
 *
 * A daemon that ends late: the limit for its end, and its lock while the kernel still frees its
 * memory. A child imitates the daemon.
 */
#include "end_guard.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/harness.h"
#include "support/wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* ---- The limit, which ends a child ---- */

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
    const char *library = getenv("SHUF_FAKE_LIBRARY");
    if (!library)
        skip();
    assert_int_equal(setenv("LD_PRELOAD", library, 1), 0);
    assert_int_equal(setenv("SHUF_FAKE", place, 1), 0);
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
    let_hang_at("hang_at_end");
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
    let_hang_at("hang_at_file");
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

/* The first line about a request goes to a journal that has stopped. Standard error can still be
 * written. The daemon waits a second for it, and not until the guard ends the process. */
static void journal_that_hangs_is_no_failure(void **state)
{
    static const char *const extra[] = {"--slow-request", "1us", NULL};
    struct harness h;
    struct stat status;
    char stream[64];
    (void)state;
    let_hang_at("hang_at_journal");
    assert_true(harness_prepare(&h, "cpu", extra));
    shufd_write(h.log, "");
    assert_int_equal(stat(h.log, &status), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    const bool started = harness_restart(&h);
    unsetenv("JOURNAL_STREAM");
    let_nothing_hang();
    assert_true(started);
    struct wire *w = wire_greet(&h);
    wire_lease(w, 1000, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_close(w);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    assert_true(harness_stop(&h));
}

/* With the exit code of the failure, on which the service manager decides. */
static void daemon_that_cannot_start_leaves_a_library_that_hangs(void **state)
{
    (void)state;
    let_hang_at("hang_at_end");
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

/* ---- The lock: the first thread of the child has ended, and its second one keeps the lock ---- */

static void *exit_after_delay(void *channel)
{
    const uint64_t ms = child_receive(*(int *)channel);
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
    _exit(0);
}

static void hold_lock(const struct harness *h)
{
    char text[32], path[HARNESS_PATH + 8];
    snprintf(path, sizeof path, "%s.lock", h->socket);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    const int length = snprintf(text, sizeof text, "%ld serving \n", (long)getpid());
    assert_int_equal(write(fd, text, (size_t)length), length);
}

static void hold_socket(const struct harness *h)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", h->socket);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 5), 0);
}

static _Noreturn void become_zombie(int channel)
{
    static int child_channel;
    pthread_attr_t attributes;
    pthread_t thread;
    child_channel = channel;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    assert_int_equal(pthread_create(&thread, &attributes, exit_after_delay, &child_channel), 0);
    pthread_exit(NULL);
}

static void die_with_lock(int channel, void *context)
{
    hold_lock(context);
    become_zombie(channel);
}

static void die_with_lock_and_socket(int channel, void *context)
{
    hold_lock(context);
    hold_socket(context);
    become_zombie(channel);
}

static void await_zombie(pid_t pid)
{
    char path[64], state = ' ';
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    for (int waited = 0; state != 'Z'; waited += 5) {
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
    }
}

/* The old lock disappears while the next daemon waits for it. */
static void next_daemon_waits_for_lock(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_prepare(&h, "cpu", NULL));
    const struct child dead = child_start(die_with_lock, &h);
    await_zombie(dead.pid);
    child_send(dead.channel, 500);
    assert_true(harness_restart(&h));
    child_join(&dead);
    assert_true(harness_stop(&h));
}

/* The arguments of a child that starts a daemon, which must not get the lock. */
struct refusal {
    const struct harness *h;
    pid_t lock_owner;
};

static void expect_refused(int channel, void *context)
{
    const struct refusal *refusal = context;
    const char *const arguments[] = {"--socket", refusal->h->socket, "--backend", "cpu", NULL};
    char output[4096], text[96];
    (void)channel;
    snprintf(text, sizeof text, "pid %ld, uid %ld, was killed but has not ended yet; try again",
             (long)refusal->lock_owner, (long)getuid());
    const int status = harness_run(arguments, output, sizeof output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_CANTCREAT);
    if (!strstr(output, text))
        fail_msg("\"%s\" is not in \"%s\"", text, output);
}

/* The old lock stays, with a socket or without. The next daemon gives up after a while. */
static void wait_for_lock_times_out(void **state)
{
    (void)state;
    static void (*const bodies[])(int, void *) = {die_with_lock, die_with_lock_and_socket};
    struct harness h[2];
    struct child dead[2], next[2];
    struct refusal refusals[2];
    for (int i = 0; i < 2; i++) {
        assert_true(harness_prepare(&h[i], "cpu", NULL));
        dead[i] = child_start(bodies[i], &h[i]);
        await_zombie(dead[i].pid);
        refusals[i] = (struct refusal){&h[i], dead[i].pid};
        next[i] = child_start(expect_refused, &refusals[i]);
    }
    for (int i = 0; i < 2; i++) {
        child_join(&next[i]);
        child_send(dead[i].channel, 0);
        child_join(&dead[i]);
        assert_true(harness_stop(&h[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_leaves_after_the_limit),
        cmocka_unit_test(forgotten_context_is_not_used),
        cmocka_unit_test(process_that_ends_in_time_does_not_notice),
        cmocka_unit_test(daemon_leaves_a_library_that_hangs),
        cmocka_unit_test(daemon_reports_and_leaves_a_disk_that_hangs),
        cmocka_unit_test(journal_that_hangs_is_no_failure),
        cmocka_unit_test(daemon_that_cannot_start_leaves_a_library_that_hangs),
        cmocka_unit_test(next_daemon_waits_for_lock),
        cmocka_unit_test(wait_for_lock_times_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
