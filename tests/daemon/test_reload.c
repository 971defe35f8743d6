/* SPDX-License-Identifier: MIT
 *
 * The place of shufd's configuration, its reload on SIGHUP, and the time stamps of the log.
 */
#include "config/config.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- SIGHUP ---- */

static void await_log(const struct harness *h, const char *text)
{
    char log[16384];
    shufd_await(h->log, log, sizeof log, text);
}

/* Replaces the file by a rename. The daemon may still be at the previous reload, and must not read
 * half a file. */
static void rewrite(const struct harness *h, const char *text)
{
    char path[HARNESS_PATH + 8], fresh[HARNESS_PATH + 8];
    snprintf(path, sizeof path, "%s/conf", h->directory);
    snprintf(fresh, sizeof fresh, "%s/new", h->directory);
    shufd_write(fresh, text);
    assert_int_equal(rename(fresh, path), 0);
    kill(h->pid, SIGHUP);
}

static bool log_has(const struct harness *h, const char *text)
{
    char log[16384];
    shufd_read(h->log, log, sizeof log);
    return strstr(log, text) != NULL;
}

static void reload_logs_each_changed_key(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "clients = 7\nqueue = 8\n");
    rewrite(&h, "clients = 9\nqueue = 10\nthreads = 2\ncache_time = 5min\n");
    await_log(&h, " info: reload: clients = 9, before 7\n");
    await_log(&h, " info: reload: cache_time = 5min, before 10min\n");
    await_log(&h, " warning: reload: queue = 10 takes effect only after a restart, now 8\n");
    await_log(&h, " warning: reload: threads = 2 takes effect only after a restart, now 0\n");
    kill(h.pid, SIGHUP); /* the daemon names the keys that need a restart again */
    await_log(&h, "now 8\n");
    rewrite(&h, "clients = 9\nqueue = 8\ncache_time = 300s\n");
    await_log(&h, ": nothing has changed\n");
    assert_int_equal(wire_status(&h).queue_limit, 8);
    assert_true(harness_stop(&h));
}

static void wrong_file_changes_nothing(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "clients = 7\n");
    rewrite(&h, "clients = 9\ncleints = 10\n");
    await_log(&h, "conf:2: cleints: no such key; did you mean clients?; nothing changes\n");
    assert_false(log_has(&h, "clients = 9"));
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* A reload finds what would let the next start fail, although it uses none of these keys. */
static void mistakes_of_next_start_change_nothing(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"backend = gpu", "conf:2: backend gpu: expected auto, cpu or cuda; nothing changes\n"},
        {"backend = cpu:avx1024", "conf:2: backend cpu:avx1024: "},
        {"socket_group = nosuchgrp", "conf:2: socket_group nosuchgrp: no such group; expected a "
                                     "name or a number; nothing changes\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        char text[128];
        wire_start(&h, NULL, "clients = 7\nbackend = cpu\n");
        snprintf(text, sizeof text, "clients = 9\n%s\n", rows[i][0]);
        rewrite(&h, text);
        await_log(&h, rows[i][1]);
        assert_false(log_has(&h, "clients = 9"));
        assert_true(harness_stop(&h));
    }
}

static void limits_change(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "clients = 1\nhost_memory = 16Mi\ndevice_memory = 16Mi\n");
    struct wire *w = wire_greet(&h);
    rewrite(&h, "clients = 3\nhost_memory = 64Mi\ndevice_memory = 64Mi\n");
    await_log(&h, "clients = 3, before 1");
    struct shuf__result_message permute =
        wire_permutation(5 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &permute); /* 20 MiB */
    wire_read_permutation(w, wire_expect(w, SHUF_OK, "")->payload_bytes, permute.permutation.n);
    struct wire *other = wire_greet(&h);
    wire_check_alive(other);
    assert_int_equal(wire_status(&h).memory_limit, 64 << 20);
    wire_close(other);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* After a reload, idle results expire by the new cache_time. */
static void cache_time_changes(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "cache_time = 1h\n");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute = wire_permutation(1000, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &permute);
    wire_read_permutation(w, wire_expect(w, SHUF_OK, "")->payload_bytes, permute.permutation.n);
    assert_true(wire_status(&h).memory_used > 0);
    rewrite(&h, "cache_time = 1ms\n");
    WIRE_AWAIT(&h, s, s.memory_used == 0);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* After a reload, idle results above the new limit are evicted before the next request. */
static void cache_shrinks(void **state)
{
    (void)state;
    static const char *const rows[] = {"host_cache = 0\ndevice_cache = 0\n",
                                       "host_memory = 2Mi\ndevice_memory = 2Mi\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        wire_start(&h, harness_backend, "cache_time = 1h\n");
        struct wire *w = wire_greet(&h);
        struct shuf__result_message permute =
            wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
        wire_send_result(w, &permute);
        wire_read_permutation(w, wire_expect(w, SHUF_OK, "")->payload_bytes, permute.permutation.n);
        assert_true(wire_status(&h).memory_used >= 4 << 20);
        rewrite(&h, rows[i]);
        WIRE_AWAIT(&h, s, s.memory_used == 0);
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

static void log_level_changes(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "");
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    assert_false(log_has(&h, " debug: "));
    rewrite(&h, "log_level = debug\n");
    await_log(&h, "log_level = debug, before info");
    wire_check_alive(w);
    await_log(&h, " debug: ");
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void reload_without_file_reads_keys(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, harness_backend, NULL));
    kill(h.pid, SIGHUP);
    await_log(&h, " info: reload: there is no configuration file, only keys\n");
    assert_true(harness_stop(&h));
}

/* A hundred signals in a row, some of them during the start, do not end the daemon. */
static void hangups_do_not_end_daemon(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "clients = 7\n");
    for (int i = 0; i < 100; i++)
        kill(h.pid, SIGHUP);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    await_log(&h, "nothing has changed");
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void uninstall(const char *directory)
{
    char command[512];
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

/* Requests a lease of 20 MiB of host memory, and expects a refusal. */
static void expect_refusal(const struct harness *h, const char *words)
{
    struct wire *w = wire_greet(h);
    struct shuf__result_message permute =
        wire_permutation(5 << 20, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY, words);
    wire_close(w);
}

/* The log names each key of the file that an option overrides, with its line and the option. */
static void options_override_the_file(void **state)
{
    (void)state;
    struct command c;
    struct harness h;
    char directory[] = "/tmp/shuf-reload-XXXXXX", conf[HARNESS_PATH];
    assert_non_null(mkdtemp(directory));
    snprintf(conf, sizeof conf, "%s/conf", directory);
    snprintf(h.socket, sizeof h.socket, "%s/s", directory);
    snprintf(h.log, sizeof h.log, "%s/log", directory);
    const char *const argv[] = {"sh",
                                "-c",
                                "exec \"$@\" 2>\"$0\"",
                                h.log,
                                SHUFD_PATH,
                                "--socket",
                                h.socket,
                                "--backend",
                                harness_backend,
                                "--config",
                                conf,
                                "--clients",
                                "7",
                                "--host-cache",
                                "16Mi",
                                "--host-memory",
                                "16Mi",
                                NULL};
    shufd_write(conf, "queue = 8\nclients = 7\n");
    shufd_write(h.log, "");
    command_start(&c, 0, argv);
    await_log(&h, "/s (set by --socket)\n");
    kill(c.pid, SIGHUP); /* the file and the option have the same value */
    await_log(&h, "conf: nothing has changed\n");
    shufd_write(conf, "queue = 8\nclients = 7\nhost_cache = 1Gi\nbackend = auto\n"
                      "cache_time = 7min\n");
    kill(c.pid, SIGHUP); /* the options override only default values */
    await_log(&h, "reload: cache_time = 7min, before 10min\n");
    shufd_write(conf, "queue = 8\nclients = 9\nhost_cache = 2Gi\ncache_time = 5min\n");
    kill(c.pid, SIGHUP);
    await_log(&h, "conf:2: clients = 9 is not used: the option --clients 7 of the command line");
    await_log(&h, "conf:3: host_cache = 2Gi is not used: the option --host-cache 16Mi of ");
    await_log(&h, "reload: cache_time = 5min, before 7min\n");
    assert_false(log_has(&h, "clients = 9, before"));
    assert_false(log_has(&h, "1Gi is not used"));
    assert_false(log_has(&h, "backend = auto is not used"));
    expect_refusal(&h, "host memory, the limit is 16 MiB: start shufd with a larger --host-memory");
    kill(c.pid, SIGTERM);
    command_finish(&c);
    assert_int_equal(c.status, 0);
    command_free(&c);
    uninstall(directory);
}

/* ---- The file ---- */

static void config_path_follows_prefix(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"/usr/bin/shufd", "etc", "/etc/shufd/shufd.conf"},
        {"/bin/shufd", "etc", "/etc/shufd/shufd.conf"},
        {"/usr/local/bin/shufd", "etc", "/usr/local/etc/shufd/shufd.conf"},
        {"/opt/shufd/bin/shufd", "etc", "/etc/opt/shufd/shufd/shufd.conf"},
        {"/home/a/x/bin/shufd", "etc", "/home/a/x/etc/shufd/shufd.conf"},
        {"/usr/bin/shufd", "/srv/etc", "/srv/etc/shufd/shufd.conf"},
        {"/usr/bin/shufd", "share/etc", "/usr/share/etc/shufd/shufd.conf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[SHUF__CONFIG_PATH];
        shuf__config_path_of(rows[i][0], rows[i][1], path);
        assert_string_equal(path, rows[i][2]);
    }
}

static void make_directory(const char *root, const char *name)
{
    char path[HARNESS_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* Runs DIRECTORY/bin/shufd and expects these words on stdout or stderr. */
static void expect_output(const char *directory, const char *option, int code, const char *words)
{
    char program[HARNESS_PATH + 32];
    snprintf(program, sizeof program, "%s/bin/shufd", directory);
    const char *const argv[] = {program, "--print-config", option, NULL};
    struct command c;
    assert_int_equal(command_run(&c, 0, argv), code);
    if (!strstr(code ? c.err.bytes : c.out.bytes, words))
        fail_msg("no \"%s\" in:\n%s%s", words, c.out.bytes, c.err.bytes);
    command_free(&c);
}

/* Makes an installation in a new directory: the program and its configuration. */
static void install(char *directory, char path[HARNESS_PATH])
{
    char command[512];
    assert_non_null(mkdtemp(directory));
    make_directory(directory, "bin");
    make_directory(directory, "etc");
    make_directory(directory, "etc/shufd");
    snprintf(command, sizeof command, "cp %s %s/bin/shufd", SHUFD_PATH, directory);
    assert_int_equal(system(command), 0);
    snprintf(path, HARNESS_PATH, "%s/etc/shufd/shufd.conf", directory);
}

static void installed_file_is_read(void **state)
{
    (void)state;
    char directory[] = "/tmp/shuf-prefix-XXXXXX", path[HARNESS_PATH], first[HARNESS_PATH + 32];
    install(directory, path);
    shufd_write(path, "queue = 17\n");
    expect_output(directory, NULL, 0, "\nqueue = 17\n");
    snprintf(first, sizeof first, "# configuration: %s\n", path);
    expect_output(directory, NULL, 0, first);
    expect_output(directory, "--no-config", 0, "\nqueue = 1024\n");
    shufd_write(path, "queue = x\n");
    expect_output(directory, NULL, 78, "etc/shufd/shufd.conf:1: queue x: expected");
    uninstall(directory);
}

/* Runs DIRECTORY/bin/shufd --check as a user who may not search etc/shufd. */
static void check_as_other(const char *directory, const char *words)
{
    char program[HARNESS_PATH + 32], socket[HARNESS_PATH + 32];
    const char *const argv[] = {
        "setpriv",   "--reuid=65534", "--regid=65534", "--clear-groups", program, "--check",
        "--backend", "cpu",           "--socket",      socket,           NULL};
    struct command c;
    snprintf(program, sizeof program, "%s/bin/shufd", directory);
    snprintf(socket, sizeof socket, "%s/none", directory);
    assert_int_equal(command_run(&c, 0, geteuid() == 0 ? argv : argv + 4), 78);
    if (!strstr(c.err.bytes, words))
        fail_msg("no \"%s\" in:\n%s", words, c.err.bytes);
    command_free(&c);
}

/* A file that the daemon cannot reach is no missing file: the daemon would start with defaults. */
static void unreachable_file_is_an_error(void **state)
{
    (void)state;
    char directory[] = "/tmp/shuf-prefix-XXXXXX", path[HARNESS_PATH], folder[HARNESS_PATH];
    char words[HARNESS_PATH + 64];
    install(directory, path);
    shufd_write(path, "queue = 17\n");
    snprintf(folder, sizeof folder, "%s/etc/shufd", directory);
    snprintf(words, sizeof words, "%s/etc", directory);
    assert_int_equal(chmod(directory, 0755) | chmod(words, 0755) | chmod(folder, 0), 0);
    snprintf(words, sizeof words, "%s/bin", directory);
    assert_int_equal(chmod(words, 0755), 0);
    snprintf(words, sizeof words, "configuration %s: Permission denied; expected a file that uid ",
             path);
    check_as_other(directory, words);
    assert_int_equal(chmod(folder, 0700), 0);
    uninstall(directory);
}

/* If the file is removed, the daemon keeps its settings. */
static void removed_file_changes_nothing(void **state)
{
    (void)state;
    struct harness h;
    struct command c;
    char directory[] = "/tmp/shuf-prefix-XXXXXX", path[HARNESS_PATH], script[512];
    const char *const argv[] = {"sh", "-c", script, NULL};
    if (access("/etc/shufd/shufd.conf", F_OK) == 0)
        skip(); /* the daemon would read that file instead */
    install(directory, path);
    shufd_write(path, "clients = 7\n");
    snprintf(h.log, sizeof h.log, "%s/log", directory);
    snprintf(script, sizeof script, "exec %s/bin/shufd --backend %s --socket %s/s 2>%s", directory,
             harness_backend, directory, h.log);
    shufd_write(h.log, "");
    command_start(&c, 0, argv);
    snprintf(script, sizeof script, " info: configuration: %s\n", path);
    await_log(&h, script);
    await_log(&h, "listening on ");
    assert_int_equal(unlink(path), 0);
    kill(c.pid, SIGHUP);
    await_log(&h, " warning: reload: there is no configuration file; nothing changes\n");
    shufd_write(path, "clients = 8\n");
    kill(c.pid, SIGHUP);
    await_log(&h, "reload: clients = 8, before 7\n");
    kill(c.pid, SIGTERM);
    command_finish(&c);
    assert_int_equal(c.status, 0);
    command_free(&c);
    uninstall(directory);
}

/* ---- The log ---- */

static bool has_timestamp(const char *line)
{
    int year, month, day, hour, minute, second, ms, zone, used = 0;
    return sscanf(line, "%4d-%2d-%2d %2d:%2d:%2d.%3d %5d %n", &year, &month, &day, &hour, &minute,
                  &second, &ms, &zone, &used) == 8 &&
           used == 30;
}

static void log_lines_have_times(void **state)
{
    (void)state;
    struct harness h;
    char log[8192];
    int lines = 0;
    wire_start(&h, harness_backend, "");
    shufd_await(h.log, log, sizeof log, "listening on ");
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"), lines++)
        if (!has_timestamp(line))
            fail_msg("no time: %s", line);
    assert_true(lines >= 2);
    assert_true(harness_stop(&h));
}

/* The journal adds the time itself. If JOURNAL_STREAM names stderr, a line has a priority and no
 * time. */
static void journal_lines_have_no_times(void **state)
{
    (void)state;
    struct harness h;
    struct stat status;
    char stream[64], log[8192];
    assert_true(harness_prepare(&h, harness_backend, NULL));
    shufd_write(h.log, "");
    assert_int_equal(stat(h.log, &status), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    assert_true(harness_restart(&h));
    shufd_await(h.log, log, sizeof log, "listening on ");
    assert_memory_equal(log, "<6>info: ", 9);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    setenv("JOURNAL_STREAM", "1:1", 1); /* stderr was redirected to another file */
    unlink(h.log);
    assert_true(harness_restart(&h));
    unsetenv("JOURNAL_STREAM");
    shufd_await(h.log, log, sizeof log, "listening on ");
    assert_true(has_timestamp(log));
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reload_logs_each_changed_key),
        cmocka_unit_test(wrong_file_changes_nothing),
        cmocka_unit_test(mistakes_of_next_start_change_nothing),
        cmocka_unit_test(limits_change),
        cmocka_unit_test(cache_time_changes),
        cmocka_unit_test(cache_shrinks),
        cmocka_unit_test(log_level_changes),
        cmocka_unit_test(reload_without_file_reads_keys),
        cmocka_unit_test(hangups_do_not_end_daemon),
        cmocka_unit_test(options_override_the_file),
        cmocka_unit_test(config_path_follows_prefix),
        cmocka_unit_test(installed_file_is_read),
        cmocka_unit_test(unreachable_file_is_an_error),
        cmocka_unit_test(removed_file_changes_nothing),
        cmocka_unit_test(log_lines_have_times),
        cmocka_unit_test(journal_lines_have_no_times),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
