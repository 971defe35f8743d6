/* SPDX-License-Identifier: MIT
 *
 * See memory_limits.h.
 */
#include "host/memory_limits.h"

#include "host/cgroup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* A container may hide /proc/meminfo. Then nobody knows the available bytes, and the limits of the
 * configuration and of control groups must do. */
static shuf_status read_total(uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    struct sysinfo machine;
    if (sysinfo(&machine) != 0)
        return shuf__fail(error, SHUF_IO, "sysinfo: %s", strerror(errno));
    *available = *total = (uint64_t)machine.totalram * machine.mem_unit;
    return SHUF_OK;
}

/* With vm.overcommit_memory = 2 the kernel also limits the committed memory. It commits a page of a
 * memfd at its first use, and sends SIGBUS if the limit is reached. False, with errno, if a file
 * cannot be read. */
static bool apply_commit_limit(const char *root, const char *meminfo, uint64_t *available)
{
    char path[PATH_MAX];
    uint64_t mode = 0, limit, committed;
    snprintf(path, sizeof path, "%s/proc/sys/vm/overcommit_memory", root);
    if (!shuf__read_number(path, "", &mode) || mode != 2 ||
        !shuf__read_number(meminfo, "CommitLimit:", &limit) ||
        !shuf__read_number(meminfo, "Committed_AS:", &committed))
        return errno == 0;
    const uint64_t left = committed < limit ? limit - committed : 0;
    *available = left < *available ? left : *available;
    return true;
}

static shuf_status read_machine(const char *root, uint64_t *available, uint64_t *total,
                                struct shuf__error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (access(path, F_OK) != 0)
        return read_total(available, total, error);
    if (!shuf__read_number(path, "MemAvailable:", available) ||
        !shuf__read_number(path, "MemTotal:", total) || !apply_commit_limit(root, path, available))
        return shuf__fail(error, SHUF_IO, "%.128s: %s", path,
                          errno ? strerror(errno) : "no MemAvailable and MemTotal in it");
    *available *= 1024;
    *total *= 1024;
    return SHUF_OK;
}

static shuf_status fail_groups(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_IO, "memory limits of the control group: %s", strerror(errno));
}

static shuf_status measure(const char *root, const struct shuf__cgroup *groups, uint64_t *available,
                           uint64_t *total, struct shuf__error *error)
{
    if (read_machine(root, available, total, error))
        return error->status;
    for (int i = 0; i < SHUF__CGROUP_VERSIONS; i++)
        if (!shuf__cgroup_apply(&groups[i], available, total))
            return fail_groups(error);
    return SHUF_OK;
}

shuf_status shuf__host_memory_below(const char *root, uint64_t *available, uint64_t *total,
                                    struct shuf__error *error)
{
    struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS];
    if (!shuf__cgroups_find(root, groups))
        return fail_groups(error);
    return measure(root, groups, available, total, error);
}

static struct {
    pthread_mutex_t lock;
    bool are_found;
    struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The groups are found only once, because the list of mounts can be long, and a process rarely
 * changes its groups. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    pthread_mutex_lock(&own.lock);
    if (!own.are_found)
        own.are_found = shuf__cgroups_find("", own.groups);
    const shuf_status status = own.are_found ? SHUF_OK : fail_groups(error);
    pthread_mutex_unlock(&own.lock);
    return status == SHUF_OK ? measure("", own.groups, available, total, error) : status;
}
