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

/* Without /proc the overflow id is the default. */
static bool is_overflow(unsigned id, const char *setting, const char *map)
{
    unsigned overflow = 65534;
    FILE *file = fopen(setting, "re");
    if (file && fscanf(file, "%u", &overflow) != 1)
        overflow = 65534;
    if (file)
        fclose(file);
    return id == overflow && !maps_all(map);
}

bool shuf__uid_is_overflow(uid_t uid)
{
    return is_overflow(uid, "/proc/sys/kernel/overflowuid", "/proc/self/uid_map");
}

bool shuf__gid_is_overflow(gid_t gid)
{
    return is_overflow(gid, "/proc/sys/kernel/overflowgid", "/proc/self/gid_map");
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
