/* SPDX-License-Identifier: MIT
 *
 * See memory.h. Control groups of version 2; a limit holds for all groups below
 * the one that has it.
 */
#include "host/memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CGROUPS "/sys/fs/cgroup"

/* The number after `field` in a file of lines "field number"; with an empty field the
 * file's first number. */
static bool read_number(const char *path, const char *field, uint64_t *number)
{
    char line[256];
    bool found = false;
    size_t length = strlen(field);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *end = line;
        if (strncmp(line, field, length) != 0)
            continue;
        *number = strtoull(line + length, &end, 10);
        found = end != line + length; /* "max" is no number */
    }
    if (file)
        fclose(file);
    return found;
}

static bool read_group_file(const char *group, const char *name, const char *field,
                            uint64_t *number)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, CGROUPS "%s/%s", group, name);
    return length > 0 && (size_t)length < sizeof path && read_number(path, field, number);
}

/* The kernel reclaims the page cache before it holds a group to its limit. */
static void apply_group(const char *group, uint64_t *available, uint64_t *total)
{
    uint64_t limit, used, cache = 0;
    if (!read_group_file(group, "memory.max", "", &limit) ||
        !read_group_file(group, "memory.current", "", &used))
        return;
    read_group_file(group, "memory.stat", "inactive_file ", &cache);
    used -= cache < used ? cache : used;
    uint64_t left = used < limit ? limit - used : 0;
    *available = left < *available ? left : *available;
    *total = limit < *total ? limit : *total;
}

/* The line "0::/some/group" of /proc/self/cgroup, without its newline. */
static bool own_group(char *group, size_t size)
{
    char line[PATH_MAX];
    bool found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = strncmp(line, "0::/", 4) == 0;
        line[strcspn(line, "\n")] = '\0';
    }
    if (file)
        fclose(file);
    if (found)
        snprintf(group, size, "%s", line + 3);
    return found;
}

static void apply_groups(uint64_t *available, uint64_t *total)
{
    char group[PATH_MAX];
    if (!own_group(group, sizeof group))
        return;
    for (char *slash; (slash = strrchr(group, '/')) != NULL; *slash = '\0')
        apply_group(group, available, total);
}

shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    if (!read_number("/proc/meminfo", "MemAvailable:", available) ||
        !read_number("/proc/meminfo", "MemTotal:", total))
        return shuf__fail(error, SHUF_IO, "/proc/meminfo: no MemAvailable and MemTotal in it");
    *available *= 1024;
    *total *= 1024;
    apply_groups(available, total);
    return SHUF_OK;
}
