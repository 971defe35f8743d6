/* SPDX-License-Identifier: MIT
 *
 * The memory that this process may still take: the free memory of the machine, within the limits of
 * its control groups (versions 2 and 1, also in a namespace or container) and, with
 * vm.overcommit_memory = 2, of committed memory. A container and a service's MemoryMax= set such
 * limits. The limit of a group also holds for all groups below it.
 */
#ifndef SHUF__MEMORY_LIMITS_H
#define SHUF__MEMORY_LIMITS_H

#include "error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The available and the total bytes. They are the same if there is no /proc/meminfo. Fails with
 * SHUF_IO if it lacks a number. */
shuf_status shuf__host_memory(uint64_t *available, uint64_t *total, struct shuf__error *error);

/* Does the same for tests: all paths that it reads begin with `root`. */
shuf_status shuf__host_memory_below(const char *root, uint64_t *available, uint64_t *total,
                                    struct shuf__error *error);

/* ---- Control groups ---- */

enum { SHUF__CGROUP_VERSIONS = 2 };

/* The directory of a group, or "" if there is none. The directories above it are groups too, up to
 * the mount point. */
struct shuf__cgroup {
    char path[PATH_MAX];
    size_t mount_point; /* length of the part of `path` that is the mount point */
    int version;
};

/* Finds the groups of this process, version 2 first. All paths begin with `root`; only tests set it
 * to anything but "". False, with errno, if a file cannot be read for lack of memory or
 * descriptors, or by EIO: a group without its limit would look like unlimited memory. */
bool shuf__cgroups_find(const char *root, struct shuf__cgroup groups[SHUF__CGROUP_VERSIONS]);

/* Whether this process is in a group below the root whose limits it cannot read, because no mount
 * shows the files of the group. Writes the path of the group. */
bool shuf__cgroup_is_hidden(const char *root, char group[PATH_MAX]);

/* Reads the number after `field` in a file of lines "field number". If `field` is empty, it reads
 * the first number of a line. On failure errno is 0, except if the file cannot be read for lack of
 * memory or descriptors, or by EIO. */
bool shuf__read_number(const char *path, const char *field, uint64_t *number);

#ifdef __cplusplus
}
#endif

#endif
