/* SPDX-License-Identifier: MIT
 *
 * The output files of shufctl: after a full disk or a signal, a file is complete or as it was.
 * Modes and links are kept, and links and pipes of other users are refused. Files that shufctl
 * computes itself have the bytes and the summary of a daemon's result, and need no daemon.
 */
#include "support/cmocka_all.h"
#include "support/sanitized.h"
#include "support/shufctl.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* If a file would exceed ulimit -f, shufctl prints an error. It does not end by a signal, and
 * leaves no file. */
static void file_above_size_limit_is_an_error(void **state)
{
    (void)state;
    static const char *const names[] = {"v.npy", "v.txt"};
    struct command c;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shufctl_script(&c,
                                        "ulimit -f 10; exec $0 permute --n 1e6 --seed 7 --out %s",
                                        shufctl_path(names[i])),
                         74);
        assert_non_null(strstr(c.err.bytes, "File too large"));
        assert_non_null(strstr(c.err.bytes, "ulimit -f"));
        command_free(&c);
    }
    assert_int_equal(shufctl_count_files(), 0);
}

/* The error lists the paths that shufctl tried, in order, and the variables that set them. */
static void file_modes_and_links_are_kept(void **state)
{
    (void)state;
    const char *path = shufctl_path("values.bin"), *link = shufctl_path("link.bin");
    char target[96];
    struct stat status;
    mode_t old = umask(027);
    char *text = shufctl_succeed(NULL, "permute --n 10 --seed 7 --out %s", path);
    umask(old);
    assert_non_null(strstr(text, "values.bin (raw)\n"));
    free(text);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(status.st_size, 40);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(symlink("values.bin", link), 0);
    free(shufctl_succeed(NULL, "permute --n 20 --seed 7 --out %s", link));
    assert_true(readlink(link, target, sizeof target) > 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 80);
    assert_int_equal(shufctl_count_files(), 2);
    assert_int_equal(status.st_mode & 0777, 0600); /* the mode of the old file */
    shufctl_remove("values.bin");
    /* The link refers to a file that does not exist. */
    free(shufctl_succeed(NULL, "permute --n 10 --seed 7 --out %s", link));
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal(status.st_size, 40);
    assert_int_equal(shufctl_count_files(), 2);
    shufctl_remove("link.bin");
    shufctl_remove("values.bin");
}

/* Else a user who makes the file before could read what another user writes. */
static void modes_of_other_users_are_not_kept(void **state)
{
    (void)state;
    const char *path = shufctl_path("values.bin");
    struct stat status;
    if (geteuid() != 0)
        skip(); /* only root can give files away */
    free(shufctl_succeed(NULL, "permute --n 10 --seed 7 --out %s", path));
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(chown(path, 65534, 65534), 0);
    const mode_t old = umask(077);
    free(shufctl_succeed(NULL, "permute --n 10 --seed 7 --out %s", path));
    umask(old);
    assert_int_equal(stat(path, &status), 0);
    assert_true((status.st_mode & 0777) == 0600 && status.st_uid == 0);
    shufctl_remove("values.bin");
}

/* A folder may be writable for all users. There, shufctl does not follow a link of another user. */
static void links_of_other_users_are_refused(void **state)
{
    (void)state;
    const char *shared = shufctl_path("shared"), *link = shufctl_path("shared/l.txt");
    const char *victim = shufctl_path("victim");
    char arguments[128];
    snprintf(arguments, sizeof arguments, "permute --n 3 --seed 7 --out %s", link);
    if (geteuid() != 0)
        skip(); /* only root can make the links */
    assert_int_equal(mkdir(shared, 0700), 0);
    assert_int_equal(symlink(victim, link), 0);
    for (int exists = 0; exists < 2; exists++) {
        assert_int_equal(chmod(shared, 01777), 0);
        assert_int_equal(lchown(link, 65534, 65534), 0);
        shufctl_fail(EX_NOPERM, "symbolic link of another user", arguments);
        assert_int_equal(access(victim, F_OK) == 0, exists);
        /* Without the sticky bit, all users of the folder may replace the files. */
        assert_int_equal(chmod(shared, 0777), 0);
        free(shufctl_succeed(NULL, "permute --n 3 --seed 7 --out %s", link));
        assert_int_equal(chmod(shared, 01777), 0);
        assert_int_equal(lchown(link, 0, 0), 0);
        free(shufctl_succeed(NULL, "permute --n 3 --seed 7 --out %s", link));
    }
    shufctl_remove("victim");
    shufctl_remove("shared/l.txt");
    assert_int_equal(rmdir(shufctl_path("shared")), 0);
}

/* As in shells, the kernel protects from it, unless fs.protected_fifos is 0. */
static void pipes_of_other_users_are_refused(void **state)
{
    (void)state;
    const char *shared = shufctl_path("shared"), *pipe = shufctl_path("shared/p");
    char arguments[128], protection = '0';
    FILE *file = fopen("/proc/sys/fs/protected_fifos", "re");
    if (!file || fread(&protection, 1, 1, file) != 1 || protection == '0' || geteuid() != 0)
        skip();
    fclose(file);
    snprintf(arguments, sizeof arguments, "permute --n 3 --seed 7 --out %s", pipe);
    assert_int_equal(mkdir(shared, 0700), 0);
    assert_int_equal(chmod(shared, 01777), 0);
    assert_int_equal(mkfifo(pipe, 0666), 0);
    assert_int_equal(chown(pipe, 65534, 65534), 0);
    shufctl_fail(EX_NOPERM, "Permission denied", arguments);
    shufctl_remove("shared/p");
    assert_int_equal(rmdir(shared), 0);
}

/* The path of a descriptor, such as /dev/stdout, stands for the open file. shufctl writes to it at
 * its position, and does not replace the file. The path of a descriptor that shufctl itself has
 * opened is refused. */
static void paths_of_descriptors_are_written_in_place(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"/dev/stdout", ">>"}, {"/dev/fd/7", ">/dev/null 7>>"}, {"/proc/self/fd/1", ">>"}};
    struct command c;
    size_t size;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(shufctl_script(&c,
                                        "echo before >%s/v; exec \"$0\" permute --n 3 --seed 7 "
                                        "--format text --out %s %s %s/v",
                                        shufctl_directory, rows[i][0], rows[i][1],
                                        shufctl_directory),
                         0);
        command_free(&c);
        char *text = shufctl_read(shufctl_path("v"), &size);
        assert_memory_equal(text, "before\n", 7);
        assert_int_equal(size, 7 + 6);
        free(text);
    }
    shufctl_remove("v");
    assert_int_equal(shufctl_script(&c, "exec \"$0\" permute --n 10 --seed 7 --out /dev/fd/3 3>&-"),
                     73);
    assert_non_null(strstr(c.err.bytes, "/dev/fd/3: cannot create: Bad file descriptor"));
    command_free(&c);
}

static void named_pipes_are_written(void **state)
{
    (void)state;
    struct command c;
    assert_int_equal(shufctl_script(&c,
                                    "cd %s && mkfifo p && { cat p & \"$0\" permute --n 10 --seed 7 "
                                    "--algorithm philox24 --out p --format text >/dev/null; wait; "
                                    "test -p p; }",
                                    shufctl_directory),
                     0);
    assert_string_equal(c.out.bytes, "5\n9\n8\n0\n1\n6\n2\n4\n3\n7\n");
    command_free(&c);
    shufctl_remove("p");
}

/* Whether the process has an open file in the directory, with or without a name. */
static bool has_open_output(pid_t pid)
{
    char path[64], target[256];
    for (int fd = 3; fd < 20; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t length = readlink(path, target, sizeof target);
        if (length > 0 && strncmp(target, shufctl_directory, strlen(shufctl_directory)) == 0)
            return true;
    }
    return false;
}

static bool await_open_output(pid_t pid)
{
    for (int i = 0; i < 6000 && !has_open_output(pid); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return has_open_output(pid);
}

/* Whether the file system supports unnamed files. If so, even SIGKILL leaves no partial file. */
static bool has_unnamed_files(void)
{
    int fd = open(shufctl_directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* After a signal the old file is unchanged, and there is no other file. */
static void signals_leave_no_partial_file(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    const char *path = shufctl_path("values.bin");
    size_t size;
    free(shufctl_succeed(NULL, "permute --n 10 --seed 7 --out %s", path));
    for (int i = 0; i < (has_unnamed_files() ? 4 : 3); i++) {
        struct command c;
        shufctl_start(&c, 0, "permute --n 1e8 --seed 7 --format text --out %s", path);
        assert_true(await_open_output(c.pid));
        kill(c.pid, signals[i]);
        command_finish(&c);
        assert_int_equal(c.status, 128 + signals[i]);
        assert_int_equal(shufctl_count_files(), 1);
        command_free(&c);
    }
    free(shufctl_read(path, &size));
    assert_int_equal(size, 40);
    shufctl_remove("values.bin");
}

/* A limit on the size of files imitates a full disk. */
static void full_disk_leaves_no_partial_file(void **state)
{
    (void)state;
    static const char *const formats[] = {"raw", "npy", "text"};
    for (int i = 0; i < 3; i++) {
        struct command c;
        assert_int_equal(shufctl_script(&c,
                                        "trap '' XFSZ; ulimit -f 100; exec \"$0\" permute --n 1e6 "
                                        "--seed 7 --format %s --out %s/values",
                                        formats[i], shufctl_directory),
                         74);
        assert_non_null(strstr(c.err.bytes, "File too large"));
        command_free(&c);
        assert_int_equal(shufctl_count_files(), 0);
    }
}

/* As ramfs does, and some file systems of FUSE. */
static void file_system_without_a_size_is_written(void **state)
{
    (void)state;
    struct command c;
    const int status =
        shufctl_script(&c,
                       "exec unshare --mount sh -c 'mount -t ramfs none %s || exit 99; exec \"$0\" "
                       "permute --n 1e6 --seed 7 --out %s/values.npy' \"$0\"",
                       shufctl_directory, shufctl_directory);
    if (status != 99 && !strstr(c.err.bytes, "unshare: ")) { /* else without the rights of root */
        assert_int_equal(status, 0);
        assert_non_null(strstr(c.out.bytes, "values.npy"));
    }
    command_free(&c);
}

static void unwritable_directory_is_an_error(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root may write anywhere */
    struct command c;
    assert_int_equal(shufctl_run(&c, 0, "permute --n 10 --seed 7 --out /usr/x"), 77);
    assert_non_null(strstr(c.err.bytes, "/usr/x: cannot create: Permission denied"));
    command_free(&c);
}

/* ---- Files that shufctl computes itself ---- */

/* Several parts of 512 KiB, or few bytes; each type; each view; rows and windows. */
static const char *const requests[] = {
    "permute --n 600001 --seed 7",
    "permute --n 600001 --seed 7 --epoch 3 --dtype u64",
    "permute --n 600001 --seed 7 --dtype i64",
    "permute --n 1 --seed 7",
    "permute --n 7 --seed 7",
    "permute --n 3000000 --seed 7 --offset 7 --stride 13",
    "permute --n 600001 --seed 7 --rank 1 --world 2",
    "permute --n 600001 --seed 7 --rank 1 --world 2 --drop-last --step 5",
    "permute --n 1001 --seed 7 --offset 1001",
    "permute --n 100003 --seed 7 --epochs 3:9",
    "permute --n 3 --seed 7 --epochs 0:100000",
    "permute --n 600001 --seed 7 --chunk 1000 --window 16",
    "gauss --count 300001 --seed 7 --offset 5",
    "gauss --count 300001 --seed 7 --dtype f16",
    "gauss --count 300001 --seed 7 --dtype f32 --method box-muller",
    "uniform --count 300001 --seed 7 --dtype u64",
    "exponential --count 300001 --seed 7",
    "bernoulli --count 300001 --seed 7 --probability 0.3",
    "integers --count 300001 --seed 7 --bound 1000",
};

enum { REQUESTS = sizeof requests / sizeof *requests };

/* A descriptor is not a regular file with a name, so the daemon computes its values. */
static void bytes_are_those_of_the_daemon(void **state)
{
    (void)state;
    static const char *const formats[] = {"raw", "npy"};
    struct command c;
    for (int i = 0; i < 2 * REQUESTS; i++) {
        const char *request = requests[i / 2], *format = formats[i % 2];
        assert_int_equal(
            shufctl_script(&c,
                           "set -e; cd %s; \"$0\" %s --format %s --out /dev/fd/7 "
                           "7>theirs >/dev/null; \"$0\" %s --format %s --out own "
                           "| grep -q 'cpu, this process'; cmp theirs own; rm theirs own",
                           shufctl_directory, request, format, request, format),
            0);
        command_free(&c);
    }
}

static json_t *summary_of(const char *request, const char *out)
{
    static const char *const differ[] = {"backend", "device", "compute_seconds",  "total_seconds",
                                         "cached",  "out",    "values_per_second"};
    json_t *o = json_parse(shufctl_succeed(NULL, "%s --json --format raw --out %s", request, out));
    for (size_t i = 0; i < sizeof differ / sizeof *differ; i++)
        json_object_del(o, differ[i]);
    return o;
}

static void summaries_are_those_of_the_daemon(void **state)
{
    (void)state;
    for (int i = 0; i < REQUESTS; i++) {
        json_t *own = summary_of(requests[i], shufctl_path("own"));
        json_t *theirs = summary_of(requests[i], "/dev/null");
        assert_true(json_equal(own, theirs));
        json_decref(own);
        json_decref(theirs);
        shufctl_remove("own");
    }
}

/* What only a daemon can compute, or only a daemon may see, is still its work. */
static void other_files_need_a_daemon(void **state)
{
    (void)state;
    static const char *const more[] = {
        "permute --n 9 --key k --out v.bin",
        "permute --n 9 --seed 7 --algorithm philox24 --out v.bin",
        "permute --n 9 --seed 7 --transport memfd --out v.bin",
        "permute --n 9 --seed 7 --out v.csv",
        "permute --n 9 --seed 7 --out -",
        "gauss --count 9 --seed 7 --summary --out v.bin",
    };
    struct command c;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        assert_int_equal(shufctl_script(&c, "cd %s; exec \"$0\" %s --socket %s/none --wait 0",
                                        shufctl_directory, more[i], shufctl_directory),
                         69);
        command_free(&c);
    }
    assert_int_equal(shufctl_count_files(), 0);
    free(shufctl_succeed(NULL, "permute --n 9 --seed 7 --socket %s --out %s", shufctl_path("none"),
                         shufctl_path("v.bin")));
    shufctl_remove("v.bin");
}

/* Runs the command in a tmpfs of 2 MiB on the directory. Skips without the rights to mount. */
static void run_on_small_disk(struct command *c, const char *commands)
{
    const int status =
        shufctl_script(c,
                       "exec unshare --mount sh -c 'mount -t tmpfs -o size=2m none %s || exit 99; "
                       "cd %s; %s' \"$0\"",
                       shufctl_directory, shufctl_directory, commands);
    if (status != 99 && !strstr(c->err.bytes, "unshare: "))
        return;
    command_free(c);
    skip();
}

static void full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    struct command c;
    run_on_small_disk(&c, "\"$0\" permute --n 9 --seed 7 --out v.bin >/dev/null; "
                          "\"$0\" permute --n 1e6 --seed 7 --out v.bin; "
                          "echo $? $(stat -c %s v.bin) $(ls -A | wc -l)");
    assert_non_null(strstr(c.err.bytes, "--out v.bin: No space left on device: it needs 4.00 MB"));
    assert_string_equal(c.out.bytes, "74 36 1\n");
    command_free(&c);
}

/* A limit on the size of files stops a write in the middle, because ramfs reserves nothing. */
static void failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    struct command c;
    const int status = shufctl_script(
        &c,
        "exec unshare --mount sh -c 'mount -t ramfs none %s || exit 99; cd %s; ulimit -f 1500; "
        "\"$0\" permute --n 9 --seed 7 --out v.bin >/dev/null; "
        "\"$0\" permute --n 1e6 --seed 7 --out v.bin; echo $? $(stat -c %%s v.bin) $(ls -A | wc "
        "-l)' "
        "\"$0\"",
        shufctl_directory, shufctl_directory);
    if (status != 99 && !strstr(c.err.bytes, "unshare: ")) { /* else without the rights of root */
        assert_non_null(strstr(c.err.bytes, "File too large"));
        assert_string_equal(c.out.bytes, "74 36 1\n");
    }
    command_free(&c);
}

/* Interrupts the command while it writes. Returns whether the signal came before its end. */
static bool interrupt(const char *path, uint64_t n, int number)
{
    struct command c;
    shufctl_start(&c, 0, "permute --n %llu --seed 7 --out %s", (unsigned long long)n, path);
    for (int i = 0; i < 10000 && !has_open_output(c.pid); i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    kill(c.pid, number);
    command_finish(&c);
    const int status = c.status;
    command_free(&c);
    assert_true(status == 128 + number || status == 0);
    return status != 0;
}

/* After a signal the old file is unchanged. If the command was faster, the file is whole. */
static void signals_leave_the_old_file(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    const char *path = shufctl_path("v.bin");
    size_t size;
    for (int i = 0; i < 3; i++) {
        uint64_t n = 4000000;
        free(shufctl_succeed(NULL, "permute --n 9 --seed 7 --out %s", path));
        while (!interrupt(path, n, signals[i])) {
            free(shufctl_read(path, &size));
            assert_int_equal(size, 4 * n);
            n *= 4;
            assert_true(n <= 256000000);
            free(shufctl_succeed(NULL, "permute --n 9 --seed 7 --out %s", path));
        }
        free(shufctl_read(path, &size));
        assert_int_equal(size, 36);
        assert_int_equal(shufctl_count_files(), 1);
        shufctl_remove("v.bin");
    }
}

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_above_size_limit_is_an_error),
        cmocka_unit_test(file_modes_and_links_are_kept),
        cmocka_unit_test(modes_of_other_users_are_not_kept),
        cmocka_unit_test(links_of_other_users_are_refused),
        cmocka_unit_test(pipes_of_other_users_are_refused),
        cmocka_unit_test(paths_of_descriptors_are_written_in_place),
        cmocka_unit_test(named_pipes_are_written),
        cmocka_unit_test(signals_leave_no_partial_file),
        cmocka_unit_test(full_disk_leaves_no_partial_file),
        cmocka_unit_test(file_system_without_a_size_is_written),
        cmocka_unit_test(unwritable_directory_is_an_error),
        cmocka_unit_test(bytes_are_those_of_the_daemon),
        cmocka_unit_test(summaries_are_those_of_the_daemon),
        cmocka_unit_test(other_files_need_a_daemon),
        cmocka_unit_test(full_disk_leaves_the_old_file),
        cmocka_unit_test(failed_write_leaves_the_old_file),
        cmocka_unit_test(signals_leave_the_old_file),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
