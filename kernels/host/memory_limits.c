/* SPDX-License-Identifier: MIT
 *
 * See memory_limits.h.
 */
#include "host/memory_limits.h"

#include "host/cgroup.h"

#include <pthread.h>
#include <stdio.h>

static shuf_status read_machine(const char *root, uint64_t *available, uint64_t *total,
                                struct shuf__error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!shuf__read_number(path, "MemAvailable:", available) ||
        !shuf__read_number(path, "MemTotal:", total))
        return shuf__fail(error, SHUF_IO, "%.128s: no MemAvailable and MemTotal in it", path);
    *available *= 1024;
    *total *= 1024;
    return SHUF_OK;
}

static shuf_status measure(const char *root, const struct shuf__cgroup *groups, uint64_t *available,
                           uint64_t *total, struct shuf__error *error)
{
    if (read_machine(root, available, total, error))
        return error->status;
    for (int i = 0; i < SHUF__CGROUP_VERSIONS; i++)
        shuf__cgroup_apply(&groups[i], available, total);
    return SHUF_OK;
}

shuf_status shuf__host_memory_below(const char *root, uint64_t *available, uint64_t *total,
                                    struct shuf__error *error)
{
    struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS];
    shuf__cgroups_find(root, groups);
    return measure(root, groups, available, total, error);
}

static struct shuf__cgroup own_groups[SHUF__CGROUP_VERSIONS];

static void find_own_groups(void)
{
    shuf__cgroups_find("", own_groups);
}

/* The groups are found only once, because the list of mounts can be long, and a process rarely
 * changes its groups. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_own_groups);
    return measure("", own_groups, available, total, error);
}
