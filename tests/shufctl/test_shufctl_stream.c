/* SPDX-License-Identifier: MIT
 *
 * Output of shufctl that is larger than the memory of its daemon. It is interrupted by a full disk,
 * a closed pipe, signals or a lost daemon. Also tests the progress on a terminal, and a daemon that
 * dies and is not replaced: `shuffle` meanwhile, and the messages that a user sees.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/shufctl.h"
#include "support/wire.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* this daemon has 16 MiB; shufctl_daemon has memory for all results */
static struct harness narrow;

static int set_up(void **state)
{
    if (shufctl_set_up(state) != 0)
        return -1;
    static char path[HARNESS_PATH + 8];
    static const char *const extra[] = {"--config", path, NULL};
    if (!harness_prepare(&narrow, shufctl_backend, extra))
        return -1;
    snprintf(path, sizeof path, "%s/conf", narrow.directory);
    FILE *file = fopen(path, "we");
    fputs("host_memory = 16Mi\ndevice_memory = 16Mi\n", file);
    fclose(file);
    return harness_restart(&narrow) ? 0 : -1;
}

static int tear_down(void **state)
{
    const bool stopped = harness_stop(&narrow);
    return shufctl_tear_down(state) == 0 && stopped ? 0 : -1;
}

/* ---- Larger than the budget ---- */

static const char *const requests[] = {
    "permute --n 6000003 --seed 7",
    "permute --n 6000003 --seed 7 --algorithm philox24 --rank 0 --world 1",
    "permute --n 12000003 --seed 7 --rank 1 --world 2",
    "permute --n 90000000 --seed 7 --offset 7 --stride 13 --count 6000000",
    "permute --n 600001 --seed 7 --epochs 3:13",
    "gauss --count 3000000 --seed 7 --offset 5",
    "gauss --count 3000000 --seed 7 --method box-muller",
    "uniform --count 3000000 --seed 7 --dtype u64",
};

enum { REQUESTS = sizeof requests / sizeof *requests };

/* Both daemons give the same bytes, to a file and to a pipe. shufctl does not compute for a
 * descriptor itself. */
static void values_in_parts_match(void **state)
{
    (void)state;
    static const char *const formats[] = {"npy", "raw", "csv"};
    struct command c;
    for (int i = 0; i < REQUESTS; i++) {
        const char *format = formats[i % 3];
        assert_int_equal(
            shufctl_script(&c,
                           "set -e; cd %s; \"$0\" %s --out /dev/fd/7 --format %s 7>whole.bin; "
                           "\"$0\" %s --out /dev/fd/7 --format %s --socket %s "
                           "7>parts.bin; "
                           "cmp whole.bin parts.bin; \"$0\" %s --out - --format %s "
                           "--socket %s | cmp whole.bin -",
                           shufctl_directory, requests[i], format, requests[i], format,
                           narrow.socket, requests[i], format, narrow.socket),
            0);
        command_free(&c);
    }
    shufctl_remove("whole.bin");
    shufctl_remove("parts.bin");
}

/* The summary without the fields that differ between runs. */
static json_t *summary_of(const char *request, const char *more)
{
    json_t *o = json_parse(shufctl_succeed(NULL, "%s --json%s", request, more));
    assert_true(json_real_value(json_member(o, "compute_seconds")) > 0);
    json_object_del(o, "compute_seconds");
    json_object_del(o, "total_seconds");
    json_object_del(o, "values_per_second");
    json_object_del(o, "cached");
    return o;
}

static void summaries_in_parts_match(void **state)
{
    (void)state;
    char socket[HARNESS_PATH + 16];
    snprintf(socket, sizeof socket, " --socket %s", narrow.socket);
    for (int i = 0; i < REQUESTS; i++) {
        json_t *whole = summary_of(requests[i], ""), *parts = summary_of(requests[i], socket);
        assert_true(json_equal(whole, parts));
        json_decref(whole);
        json_decref(parts);
    }
}

/* An inline transport copies, so the result may be larger than the daemon's memory. */
static void inline_transport_in_parts_matches(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; i++) {
        size_t size, other;
        char *plain = shufctl_succeed(&size, "%s --out - --format raw", requests[i]);
        char *copied =
            shufctl_succeed(&other, "%s --out - --format raw --transport inline --socket %s",
                            requests[i], narrow.socket);
        assert_int_equal(other, size);
        assert_memory_equal(copied, plain, size);
        free(plain);
        free(copied);
    }
}

/* Only a lease needs memory for the whole result. */
static void lease_needs_memory_for_all(void **state)
{
    (void)state;
    char arguments[256];
    snprintf(arguments, sizeof arguments, "%s --transport memfd --socket %s", requests[0],
             narrow.socket);
    shufctl_fail(71, "without --transport the result is computed in parts", arguments);
}

/* shufctl needs memory for only a few chunks, whatever the size of the result. The test is skipped
 * with a sanitizer, which needs an address space without a limit. */
static void shufctl_needs_little_memory(void **state)
{
    (void)state;
    struct command c;
    if (TEST_SANITIZED)
        skip();
    assert_int_equal(shufctl_script(&c,
                                    "ulimit -v 200000; exec \"$0\" permute --n 1e8 --seed 7 "
                                    "--socket %s --format raw --out - | wc -c",
                                    narrow.socket),
                     0);
    assert_int_equal(strtoull(c.out.bytes, NULL, 10), 400000000);
    command_free(&c);
}

/* ---- Larger than the cache ---- */

static json_int_t computed_count(const char *socket)
{
    json_t *o = json_parse(shufctl_succeed(NULL, "status --json --socket %s", socket));
    const json_int_t computed = json_integer_value(json_member(o, "computed"));
    json_decref(o);
    return computed;
}

/* The cache has no room for the whole result. So the daemon computes parts of it, and the first
 * values arrive soon. */
static void values_are_sent_during_computation(void **state)
{
    (void)state;
    static const char *const extra[] = {"--host-cache", "1Mi", "--device-cache", "1Mi", NULL};
    static const char *const request = "permute --n 42000000 --seed 7 --format raw";
    struct harness uncached;
    struct command c;
    assert_true(harness_start(&uncached, shufctl_backend, extra));
    const json_int_t before = computed_count(shufctl_daemon.socket);
    assert_int_equal(shufctl_script(&c,
                                    "set -e; cd %s; \"$0\" %s --out /dev/fd/7 7>whole.bin; "
                                    "\"$0\" %s --out - "
                                    "--socket %s | cmp whole.bin -",
                                    shufctl_directory, request, request, uncached.socket),
                     0);
    command_free(&c);
    assert_int_equal(computed_count(shufctl_daemon.socket), before + 1);
    assert_int_equal(computed_count(uncached.socket), 3);
    shufctl_remove("whole.bin");
    assert_true(harness_stop(&uncached));
}

/* ---- Cached ---- */

static void repeated_request_is_cached(void **state)
{
    (void)state;
    static const char *const again[] = {"permute --n 1000 --seed 99",
                                        "gauss --count 1000 --seed 99",
                                        "uniform --count 1000 --seed 99 --transport memfd"};
    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        for (int k = 0; k < 2; k++) {
            json_t *o = json_parse(shufctl_succeed(NULL, "%s --json", again[i]));
            assert_int_equal(json_is_true(json_member(o, "cached")), k);
            assert_int_equal(json_is_false(json_member(o, "cached")), !k);
            json_decref(o);
            char *text = shufctl_succeed(NULL, "%s", again[i]);
            assert_non_null(strstr(text, "\ncached      yes\n"));
            free(text);
        }
}

/* ---- CSV ---- */

static void csv_files_match(void **state)
{
    (void)state;
    size_t size;
    free(shufctl_succeed(NULL, "permute --n 10 --seed 7 --algorithm philox24 --out %s",
                         shufctl_path("a.csv")));
    char *text = shufctl_read(shufctl_path("a.csv"), &size);
    assert_string_equal(text, "5\n9\n8\n0\n1\n6\n2\n4\n3\n7\n");
    free(text);
    free(shufctl_succeed(NULL, "permute --n 3 --seed 7 --epochs 0:2 --out %s",
                         shufctl_path("a.csv")));
    text = shufctl_read(shufctl_path("a.csv"), &size);
    assert_string_equal(text, "0,1,2\n0,2,1\n");
    free(text);
    shufctl_remove("a.csv");
}

/* ---- Ends ---- */

/* A limit on the size of files imitates a full disk: the write fails with EFBIG. */
static void full_disk_leaves_no_partial_file(void **state)
{
    (void)state;
    static const char *const files[] = {"a.bin", "a.txt", "a.npy"};
    struct command c;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(shufctl_script(&c,
                                        "trap '' XFSZ; cd %s; ulimit -f 8000; exec \"$0\" %s "
                                        "--socket %s --out %s",
                                        shufctl_directory, requests[0], narrow.socket, files[i]),
                         74);
        assert_non_null(strstr(c.err.bytes, ": File too large"));
        assert_int_equal(shufctl_count_files(), 0);
        command_free(&c);
    }
}

static void closed_pipe_ends_shufctl(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_script(&c,
                                    "trap '' PIPE; { \"$0\" %s --socket %s --out -; echo $? >&2; } "
                                    "| head -c 10000000 | wc -c",
                                    requests[0], narrow.socket),
                     0);
    assert_int_equal(strtoull(c.out.bytes, NULL, 10), 10000000);
    assert_string_equal(c.err.bytes, "shufctl permute: --out -: Broken pipe: its reader ended, and "
                                     "SIGPIPE is ignored\n74\n");
    command_free(&c);
    assert_int_equal(
        shufctl_script(&c,
                       "sh -c '\"$0\" \"$@\"; echo $? >&2' \"$0\" %s --socket %s --out - "
                       "| head -c 10000000 | wc -c",
                       requests[0], narrow.socket),
        0);
    assert_string_equal(c.err.bytes, "141\n");
    command_free(&c);
}

static void interrupt_ends_shufctl(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (int i = 0; i < 4; i++) {
        struct command c;
        shufctl_start(&c, i % 2 ? COMMAND_TERMINAL_ERR : 0,
                      "permute --n 1e11 --seed 7 --format text --out %s --socket %s",
                      shufctl_path("large.txt"), narrow.socket);
        nanosleep(&(struct timespec){.tv_sec = i % 2, .tv_nsec = 300000000}, NULL);
        kill(c.pid, signals[i]);
        command_finish(&c);
        assert_int_equal(c.status, 128 + signals[i]);
        assert_int_equal(shufctl_count_files(), 0);
        command_free(&c);
    }
}

/* ---- Terminals ---- */

static void values_on_a_terminal(void **state)
{
    (void)state;
    struct command c;
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    const char *request = "permute --n 10 --seed 7 --algorithm philox24";
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_OUT, "%s", request), 0);
    assert_non_null(strstr(c.out.bytes, "\nvalues      5 9 8 0 1 6 2 4 3 7\r\n"));
    assert_null(strstr(c.out.bytes, "\033"));
    command_free(&c);
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_OUT, "permute --n 1e6 --seed 7"), 0);
    assert_non_null(strstr(c.out.bytes, "\nvalues      "));
    assert_non_null(strstr(c.out.bytes, " ...\r\n"));
    command_free(&c);
    setenv("NO_COLOR", "", 1); /* an empty value counts as not set */
    assert_int_equal(shufctl_run(&c, COMMAND_TERMINAL_OUT, "%s", request), 0);
    assert_non_null(strstr(c.out.bytes, "\033[1mvalues      \033[0m5 9 8 0"));
    command_free(&c);
    char *text = shufctl_succeed(NULL, "%s", request);
    assert_true(!strstr(text, "\nvalues") && !strchr(text, '\033'));
    free(text);
    unsetenv("NO_COLOR");
}

/* The summary is of a result larger than the memory, so the progress line counts parts. */
static void progress_line_counts_parts(void **state)
{
    (void)state;
    struct command c;
    shufctl_start(&c, COMMAND_TERMINAL_ERR, "permute --n 1e12 --seed 7 --socket %s", narrow.socket);
    assert_true(command_await_err(&c, " left\033[K"));
    kill(c.pid, SIGINT);
    command_finish(&c);
    assert_int_equal(c.status, 128 + SIGINT);
    assert_non_null(strstr(c.err.bytes, "\rcomputing: "));
    assert_non_null(strstr(c.err.bytes, " of 8.00 TB, "));
    assert_non_null(strstr(c.err.bytes, " left\033[K"));
    assert_string_equal(c.err.bytes + c.err.size - 4, "\r\033[K"); /* the progress line is erased */
    command_free(&c);
}

/* With -q shufctl prints only errors and the requested output. */
static void quiet_prints_only_results(void **state)
{
    (void)state;
    static const char *const silent[] = {"permute --n 10 --seed 7 --out $D/q.npy",
                                         "gauss --count 10 --seed 7 --out $D/q.npy",
                                         "permute --n 1e6 --seed 7 --prefetch", "drop",
                                         "shuffle --in $D/q.npy --seed 7 --out $D/q.npy"};
    static const char *const loud[] = {"permute --n 10 --seed 7",
                                       "permute --n 10 --seed 7 --out - --format text",
                                       "permute --n 10 --seed 7 --out $D/q.npy --json",
                                       "uniform --count 10 --seed 7 --out $D/q.npy --summary",
                                       "index --n 10 --seed 7 --at 0",
                                       "status",
                                       "drop --json"};
    struct command c;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        for (int is_quiet = 0; is_quiet < 2; is_quiet++) {
            assert_int_equal(shufctl_script(&c, "D=%s; $0 %s %s", shufctl_directory, silent[i],
                                            is_quiet ? "-q" : ""),
                             0);
            assert_int_equal(c.out.size == 0, is_quiet);
            assert_int_equal(c.err.size, 0);
            command_free(&c);
        }
    for (size_t i = 0; i < sizeof loud / sizeof *loud; i++) {
        assert_int_equal(shufctl_script(&c, "D=%s; $0 %s -q", shufctl_directory, loud[i]), 0);
        assert_true(c.out.size > 0);
        command_free(&c);
    }
    shufctl_fail(64, "--out x.xyz: ", "permute --n 10 --seed 7 -q --out x.xyz");
    shufctl_remove("q.npy");
}

/* The daemon dies while shufctl waits for its reader. The values continue from the next daemon. */
static void output_continues_after_killed_daemon(void **state)
{
    (void)state;
    static const char *const notes[] = {"shufctl permute: the connection to the daemon is lost; "
                                        "waiting up to 10 s for it to come back\r\n",
                                        "shufctl permute: connected again\r\n"};
    size_t size;
    char *whole = shufctl_succeed(&size, "%s --out - --format raw", requests[0]);
    for (int terminal = 0; terminal < 2; terminal++) {
        struct command c;
        shufctl_start(&c, terminal ? COMMAND_TERMINAL_ERR : 0,
                      "%s --out - --format raw --socket %s", requests[0], narrow.socket);
        struct pollfd values = {.fd = c.out.fd, .events = POLLIN};
        assert_int_equal(poll(&values, 1, COMMAND_WAIT_MS), 1);
        harness_kill(&narrow, SIGKILL);
        assert_true(harness_restart(&narrow));
        command_finish(&c);
        assert_int_equal(c.status, 0);
        assert_int_equal(c.out.size, size);
        assert_memory_equal(c.out.bytes, whole, size);
        for (int i = 0; i < 2; i++)
            assert_int_equal(strstr(c.err.bytes, notes[i]) != NULL, terminal);
        command_free(&c);
    }
    free(whole);
}

/* The message of the loss appears at once, before the seconds of reconnecting. */
static void loss_without_next_daemon_is_an_error(void **state)
{
    (void)state;
    struct command c;
    shufctl_start(&c, COMMAND_TERMINAL_ERR, "%s --out - --format raw --socket %s", requests[0],
                  narrow.socket);
    struct pollfd values = {.fd = c.out.fd, .events = POLLIN};
    assert_int_equal(poll(&values, 1, COMMAND_WAIT_MS), 1);
    harness_kill(&narrow, SIGKILL);
    command_finish(&c);
    assert_int_equal(c.status, 69);
    const char *lost = strstr(c.err.bytes, "is lost; waiting up to 10 s for it to come back");
    const char *later = strstr(c.err.bytes, "the daemon was lost, and no other came within 10.000");
    assert_true(lost && later && lost < later);
    command_free(&c);
    assert_true(harness_restart(&narrow));
}

/* ---- A lost daemon ---- */

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

static void loss_during_shuffle_is_an_error(void **state)
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

/* ---- A daemon that is lost while it computes ---- */

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
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest stream_tests[] = {
        cmocka_unit_test(values_in_parts_match),
        cmocka_unit_test(summaries_in_parts_match),
        cmocka_unit_test(inline_transport_in_parts_matches),
        cmocka_unit_test(lease_needs_memory_for_all),
        cmocka_unit_test(shufctl_needs_little_memory),
        cmocka_unit_test(repeated_request_is_cached),
        cmocka_unit_test(csv_files_match),
        cmocka_unit_test(full_disk_leaves_no_partial_file),
        cmocka_unit_test(closed_pipe_ends_shufctl),
        cmocka_unit_test(interrupt_ends_shufctl),
        cmocka_unit_test(values_on_a_terminal),
        cmocka_unit_test(progress_line_counts_parts),
        cmocka_unit_test(output_continues_after_killed_daemon),
        cmocka_unit_test(quiet_prints_only_results),
        cmocka_unit_test(loss_without_next_daemon_is_an_error),
        cmocka_unit_test(values_are_sent_during_computation),
    };
    const struct CMUnitTest lost_tests[] = {
        cmocka_unit_test(loss_during_shuffle_is_an_error),
        cmocka_unit_test(wait_for_next_daemon_is_shown),
    };
    return cmocka_run_group_tests(stream_tests, set_up, tear_down) +
           cmocka_run_group_tests(lost_tests, shufctl_set_up, shufctl_tear_down);
}
