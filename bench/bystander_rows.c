/* SPDX-License-Identifier: MIT
 *
 * See bystander_rows.h.
 */
#include "bystander_rows.h"

#include "process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BYSTANDER_UID = 61001,
    HOSTILE_UID = 61000,
    BUSY_MS = 300, /* time that an attack has to reach its full strength */
};

/* ---- Control groups ---- */

static const char *const names[GROUPS] = {
    [GROUP_SERVICES] = "shuf-bench-services",
    [GROUP_USERS] = "shuf-bench-users",
    [GROUP_BYSTANDER] = "shuf-bench-users/bystander",
    [GROUP_HOSTILE] = "shuf-bench-users/hostile",
};
static const char *root; /* the directory of the whole tree */

static const char *path_of(enum group group, const char *file)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", root, names[group], file);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        die("%s: %s", path, strerror(errno));
}

static void remove_groups(void)
{
    for (int group = GROUPS - 1; group >= 0; group--)
        rmdir(path_of((enum group)group, ""));
}

/* In version 2 a group has the files of the processor only if the group above it says so. */
static void make(enum group group)
{
    if (mkdir(path_of(group, ""), 0755) != 0 && errno != EEXIST)
        die("control group %s: %s", path_of(group, ""), strerror(errno));
    if (group == GROUP_USERS && access(path_of(group, "cgroup.subtree_control"), F_OK) == 0)
        write_text(path_of(group, "cgroup.subtree_control"), "+cpu");
}

void groups_make(void)
{
    const char *version_1 = "/sys/fs/cgroup/cpu", *version_2 = "/sys/fs/cgroup";
    root = access("/sys/fs/cgroup/cpu/cgroup.procs", F_OK) == 0 ? version_1 : version_2;
    if (root == version_2)
        write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
    for (int group = 0; group < GROUPS; group++)
        make((enum group)group);
    atexit(remove_groups);
}

void group_join(enum group group, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%ld", (long)pid);
    write_text(path_of(group, "cgroup.procs"), text);
}

/* ---- The bystander ---- */

bool bench_selects(const struct bench *bench, const struct attack *attack)
{
    return !bench->only || strstr(attack->name, bench->only);
}

void bench_run_first(const struct bench *bench, pid_t pid)
{
    const struct sched_param priority = {.sched_priority = 1};
    if (bench->is_realtime && sched_setscheduler(pid, SCHED_FIFO, &priority) != 0)
        die("--realtime: %s", strerror(errno));
}

static void become_bystander(const struct bench *bench)
{
    bench_run_first(bench, 0);
    if (bench->has_groups)
        group_join(GROUP_BYSTANDER, getpid());
    if (setgid(BYSTANDER_UID) || setuid(BYSTANDER_UID))
        die("cannot become user %d: %s", BYSTANDER_UID, strerror(errno));
}

static void run_bystander(const struct bench *bench, bystander *run, const void *server)
{
    bench->samples->count = 0;
    bench->samples->failures = 0;
    bench->samples->failure[0] = '\0';
    const pid_t pid = process_fork();
    if (pid == 0) {
        become_bystander(bench);
        run(server, bench->run_ns, bench->samples);
        _exit(0);
    }
    int status;
    while (!process_ended(pid, &status))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (status != 0)
        die("the bystander ended with wait status 0x%x", (unsigned)status);
}

/* ---- Rows ---- */

void bench_measure(const struct bench *bench, const char *name, bystander *run, const void *server)
{
    struct samples *samples = bench->samples;
    run_bystander(bench, run, server);
    report_latency(bench->report, name, BYSTANDER_N, samples->ns, samples->count);
    if (samples->failures)
        fprintf(stderr, "%s: %s\n", name, samples->failure);
}

void bench_add_part(const struct bench *bench, const char *name, const char *part, double value,
                    const char *unit)
{
    char label[128];
    snprintf(label, sizeof label, "%s: %s", name, part);
    report_value(bench->report, label, BYSTANDER_N, value, unit);
}

void bench_measure_requests(const struct bench *bench, const char *name, bystander *run,
                            const void *server, double *idle_p99)
{
    const struct samples *samples = bench->samples;
    bench_measure(bench, name, run, server);
    const double p99 = samples->count ? samples->ns[samples->count * 99 / 100] : 0;
    if (*idle_p99 == 0)
        *idle_p99 = p99;
    bench_add_part(bench, name, "p99 / idle p99", p99 / *idle_p99, "");
    bench_add_part(bench, name, "failed requests", (double)samples->failures, "");
}

/* ---- Attacks ---- */

void bench_start_attack(const struct bench *bench, const struct attack *attack, const char *socket,
                        pid_t pids[HOSTILE_PROCESSES])
{
    hostile_start(attack, socket, HOSTILE_UID, bench->is_apart ? &bench->others : NULL, pids);
    for (int i = 0; bench->has_groups && i < HOSTILE_PROCESSES; i++)
        group_join(GROUP_HOSTILE, pids[i]);
    nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000L}, NULL);
}

void bench_stop_attack(const struct bench *bench, const char *name,
                       const pid_t pids[HOSTILE_PROCESSES])
{
    struct attack_counts counts;
    hostile_stop(pids, &counts);
    bench_add_part(bench, name, "sent", (double)counts.sent_bytes / 1e9, "GB");
    bench_add_part(bench, name, "connections", (double)counts.connects, "");
}
