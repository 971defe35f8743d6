/* SPDX-License-Identifier: MIT
 *
 * See memory_group.h.
 */
#include "memory_group.h"

#include "cmocka_all.h"
#include "host/memory_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = PATH_MAX + 64 };

static struct shuf__cgroup own_groups[SHUF__CGROUP_VERSIONS];
/* The previous group of this process, in the hierarchy of the same version. */
static const struct shuf__cgroup *origin;
static char directory[PATH];

static bool write_group_file(const char *folder, const char *name, const char *text)
{
    char path[PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    const bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

static bool set_limit(int version, uint64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, bytes);
    write_group_file(directory, "memory.swap.max", "0");
    const bool set =
        write_group_file(directory, version == 2 ? "memory.max" : "memory.limit_in_bytes", text);
    write_group_file(directory, "memory.memsw.limit_in_bytes", text);
    return set;
}

static bool make_group_below(int version, const char *parent, uint64_t bytes)
{
    snprintf(directory, sizeof directory, "%.*s/shuf-test-%d", PATH_MAX, parent, (int)getpid());
    if (version == 2)
        write_group_file(parent, "cgroup.subtree_control", "+memory");
    if (mkdir(directory, 0755) != 0)
        return false;
    if (set_limit(version, bytes))
        return true;
    rmdir(directory);
    return false;
}

/* Makes the group below this process's own group, or else at the top of the hierarchy. */
bool memory_group_make(uint64_t bytes)
{
    shuf__cgroups_find("", own_groups);
    for (int i = 0; i < SHUF__CGROUP_VERSIONS; i++) {
        char top[PATH_MAX];
        origin = &own_groups[i];
        snprintf(top, sizeof top, "%.*s", (int)origin->mount_point, origin->path);
        if (*top && (make_group_below(origin->version, origin->path, bytes) ||
                     make_group_below(origin->version, top, bytes)))
            return true;
    }
    return false;
}

void memory_group_enter(void)
{
    assert_true(write_group_file(directory, "cgroup.procs", "0"));
}

void memory_group_leave(void)
{
    assert_true(write_group_file(origin->path, "cgroup.procs", "0"));
}

uint64_t memory_group_kills(void)
{
    char path[PATH + 64];
    uint64_t kills = 0;
    snprintf(path, sizeof path, "%s/%s", directory,
             origin->version == 2 ? "memory.events" : "memory.oom_control");
    assert_true(shuf__read_number(path, "oom_kill ", &kills));
    return kills;
}

/* Tries several times to remove the group, because the kernel may still count an ended process as a
 * member. */
void memory_group_remove(void)
{
    for (int waited = 0; rmdir(directory) != 0; waited += 10) {
        if (waited >= 5000)
            fail_msg("%s: %s", directory, strerror(errno));
        usleep(10000);
    }
}
