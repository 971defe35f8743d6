/* SPDX-License-Identifier: MIT
 *
 * How long `shufctl permute --out FILE` takes for a new file of u32, beside `cp` of that file to
 * another new one in the same directory, and beside a file whose values come from a daemon over its
 * socket. The three take turns, so other load affects them alike; the minimum counts.
 */
#include "daemon.h"
#include "process.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 7, PATH = 4096 };

static char file[PATH], copy[PATH];

static void remove_files(void)
{
    unlink(file);
    unlink(copy);
}

static double time_program(const char *const *argv)
{
    const double start = now_ns();
    char *output = process_output(argv);
    if (!output)
        die("%s failed", argv[0]);
    free(output);
    return now_ns() - start;
}

/* `seed` is new for each file, so no daemon has its values. */
static double time_own(const char *n, const char *seed)
{
    unlink(file);
    return time_program((const char *[]){SHUFCTL_PATH, "permute", "--n", n, "--seed", seed,
                                         "--format", "raw", "--out", file, NULL});
}

/* An inline transport comes from a daemon, as a copy. */
static double time_from_daemon(const char *n, const char *seed, const char *socket)
{
    unlink(file);
    return time_program((const char *[]){SHUFCTL_PATH, "permute", "--n", n, "--seed", seed,
                                         "--format", "raw", "--transport", "inline", "--socket",
                                         socket, "--out", file, NULL});
}

static double time_cp(void)
{
    unlink(copy);
    return time_program((const char *[]){"cp", file, copy, NULL});
}

static double least(const double *ns)
{
    double found = ns[0];
    for (int i = 1; i < SAMPLES; i++)
        found = ns[i] < found ? ns[i] : found;
    return found;
}

static void measure(struct report *report, const char *text, const char *socket)
{
    double own[SAMPLES], served[SAMPLES], cp[SAMPLES];
    const uint64_t n = (uint64_t)strtod(text, NULL);
    for (int i = 0; i < SAMPLES; i++) {
        char seed[16];
        snprintf(seed, sizeof seed, "%d", i);
        served[i] = time_from_daemon(text, seed, socket);
        own[i] = time_own(text, seed);
        cp[i] = time_cp();
        remove_files();
    }
    const double ratio = least(own) / least(cp), before = least(served) / least(cp);
    report_add(report, "shufctl", n, n, "values", 4 * n, own, SAMPLES);
    report_add(report, "values of a daemon", n, n, "values", 4 * n, served, SAMPLES);
    report_add(report, "cp", n, n, "values", 4 * n, cp, SAMPLES);
    report_value(report, "shufctl / cp, minima", n, ratio, "times");
    report_value(report, "values of a daemon / cp, minima", n, before, "times");
}

/* --directory DIR: where the files lie, with room for two of 4 GB. --n N replaces the sizes. */
int main(int argc, char **argv)
{
    static const char *const sizes[] = {"1e8", "1e9"};
    const char *directory = "/dev/shm", *n = NULL, *backend = "cpu";
    const struct report_option options[] = {
        {"--directory", "DIR", &directory}, {"--n", "N", &n}, {"--backend", "SPEC", &backend}, {0}};
    struct report *report = report_begin_with("files", options, argc, argv);
    struct daemon daemon;
    snprintf(file, sizeof file, "%s/bench_files.%d.a", directory, (int)getpid());
    snprintf(copy, sizeof copy, "%s/bench_files.%d.b", directory, (int)getpid());
    atexit(remove_files);
    daemon_start(&daemon, backend);
    daemon_fact(&daemon, report, "daemon");
    report_fact(report, "directory", directory);
    for (size_t i = 0; i < (n ? 1 : sizeof sizes / sizeof *sizes); i++)
        measure(report, n ? n : sizes[i], daemon.socket);
    daemon_stop(&daemon);
    return report_end(report);
}
