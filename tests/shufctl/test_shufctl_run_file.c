/* SPDX-License-Identifier: MIT
 *
 * The files that shufctl computes itself: they have the bytes and the summary of a daemon's result,
 * need no daemon, and after a full disk or a signal a file is complete or as it was.
 */
#include "support/cmocka_all.h"
#include "support/json.h"
#include "support/shufctl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Whether the process has an open file in the directory, with or without a name. */
static bool has_open_output(pid_t pid)
{
    char path[64], target[256];
    for (int fd = 3; fd < 6; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        const ssize_t length = readlink(path, target, sizeof target);
        if (length > 0 && strncmp(target, shufctl_directory, strlen(shufctl_directory)) == 0)
            return true;
    }
    return false;
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
        cmocka_unit_test(bytes_are_those_of_the_daemon),
        cmocka_unit_test(summaries_are_those_of_the_daemon),
        cmocka_unit_test(other_files_need_a_daemon),
        cmocka_unit_test(full_disk_leaves_the_old_file),
        cmocka_unit_test(failed_write_leaves_the_old_file),
        cmocka_unit_test(signals_leave_the_old_file),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
