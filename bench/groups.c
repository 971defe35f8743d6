/* SPDX-License-Identifier: MIT
 *
 * See groups.h.
 */
#include "groups.h"

#include "process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
