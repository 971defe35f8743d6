/* SPDX-License-Identifier: MIT
 *
 * The output files of shufctl: after a full disk or a signal, a file is complete or does not exist.
 * Modes and links are kept, and links and pipes of other users are refused.
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

int main(int argc, char **argv)
{
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_above_size_limit_is_an_error),
        cmocka_unit_test(file_modes_and_links_are_kept),
        cmocka_unit_test(links_of_other_users_are_refused),
        cmocka_unit_test(pipes_of_other_users_are_refused),
        cmocka_unit_test(paths_of_descriptors_are_written_in_place),
        cmocka_unit_test(named_pipes_are_written),
        cmocka_unit_test(signals_leave_no_partial_file),
        cmocka_unit_test(full_disk_leaves_no_partial_file),
        cmocka_unit_test(file_system_without_a_size_is_written),
        cmocka_unit_test(unwritable_directory_is_an_error),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
