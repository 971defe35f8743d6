/* SPDX-License-Identifier: MIT
 *
 * See privilege.h.
 */
#include "privilege.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* Whether the user namespace of this process maps all users or groups, as the first one does. Then
 * no id is an overflow id. */
static bool maps_all(const char *path)
{
    unsigned long inside, outside, count = 0;
    FILE *map = fopen(path, "re");
    if (map && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3)
        count = 0;
    if (map)
        fclose(map);
    return count == UINT32_MAX;
}

/* The ids of a namespace. They are read once, because a client may set many locks on these files,
 * and each close() of a file searches its locks. */
struct ids {
    unsigned overflow;
    bool all_are_mapped; /* so no id is the overflow id */
};

static struct ids users, groups;

/* Without /proc the overflow id is the default. */
static void read_ids(struct ids *ids, const char *setting, const char *map)
{
    *ids = (struct ids){.overflow = 65534, .all_are_mapped = maps_all(map)};
    FILE *file = fopen(setting, "re");
    if (file && fscanf(file, "%u", &ids->overflow) != 1)
        ids->overflow = 65534;
    if (file)
        fclose(file);
}

static void read_all(void)
{
    read_ids(&users, "/proc/sys/kernel/overflowuid", "/proc/self/uid_map");
    read_ids(&groups, "/proc/sys/kernel/overflowgid", "/proc/self/gid_map");
}

static bool is_overflow(const struct ids *ids, unsigned id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    return id == ids->overflow && !ids->all_are_mapped;
}

bool shuf__uid_is_overflow(uid_t uid)
{
    return is_overflow(&users, uid);
}

bool shuf__gid_is_overflow(gid_t gid)
{
    return is_overflow(&groups, gid);
}

static bool own_is_overflow;

static void find_own(void)
{
    own_is_overflow = shuf__uid_is_overflow(geteuid());
}

bool shuf__uid_is_privileged(uid_t uid)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_own);
    return uid == 0 || (uid == geteuid() && !own_is_overflow);
}
