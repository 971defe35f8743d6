/* SPDX-License-Identifier: MIT
 *
 * Finds the control groups (version 2 and version 1) that limit the memory of this process, also in
 * a namespace or container. The limit of a group also holds for all groups below it.
 */
#ifndef SHUF__HOST_CGROUP_H
#define SHUF__HOST_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Lowers *available and *total to the limits of the group and of the groups above it. False as
 * shuf__cgroups_find(). */
bool shuf__cgroup_apply(const struct shuf__cgroup *group, uint64_t *available, uint64_t *total);

/* Reads the number after `field` in a file of lines "field number". If `field` is empty, it reads
 * the first number of a line. On failure errno is 0, except if the file cannot be read for lack of
 * memory or descriptors, or by EIO. */
bool shuf__read_number(const char *path, const char *field, uint64_t *number);

#ifdef __cplusplus
}
#endif

#endif
