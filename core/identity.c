/* SPDX-License-Identifier: MIT
 *
 * See identity.h.
 */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Privileged users ---- */

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

static struct ids user_ids, group_ids;

/* Without /proc the overflow id is the default. One read() takes the whole number: a setting of
 * sysctl has no second part, and a stream without memory for its buffer reads byte after byte. */
static void read_ids(struct ids *ids, const char *setting, const char *map)
{
    char text[16] = "";
    const int file = open(setting, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0 ||
        sscanf(text, "%u", &ids->overflow) != 1)
        ids->overflow = 65534;
    if (file >= 0)
        close(file);
    ids->all_are_mapped = maps_all(map);
}

static void read_all(void)
{
    read_ids(&user_ids, "/proc/sys/kernel/overflowuid", "/proc/self/uid_map");
    read_ids(&group_ids, "/proc/sys/kernel/overflowgid", "/proc/self/gid_map");
}

static bool is_overflow(const struct ids *ids, unsigned id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    return id == ids->overflow && !ids->all_are_mapped;
}

bool shuf__uid_is_overflow(uid_t uid)
{
    return is_overflow(&user_ids, uid);
}

bool shuf__gid_is_overflow(gid_t gid)
{
    return is_overflow(&group_ids, gid);
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

/* ---- Names of users and groups ---- */

enum {
    ENTRY_MAX = 4096, /* bytes of an entry for a user or group; of a longer one the text is the
                       * number */
    GROUPS_MAX = 1024,
    LINE_MOST = 64 << 20, /* of a group with many members */
};

void shuf__name_user(uid_t uid, char text[SHUF__ACCOUNT_NAME])
{
    char buffer[ENTRY_MAX];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found)
        snprintf(text, SHUF__ACCOUNT_NAME, "%s", entry.pw_name);
    else
        snprintf(text, SHUF__ACCOUNT_NAME, "%u", (unsigned)uid);
}

/* Writes the name, and returns true; or the number. */
static bool find_name(gid_t gid, char text[SHUF__ACCOUNT_NAME])
{
    char buffer[ENTRY_MAX];
    struct group entry, *found = NULL;
    const bool has_name = getgrgid_r(gid, &entry, buffer, sizeof buffer, &found) == 0 && found;
    if (has_name)
        snprintf(text, SHUF__ACCOUNT_NAME, "%s", entry.gr_name);
    else
        snprintf(text, SHUF__ACCOUNT_NAME, "%u", (unsigned)gid);
    return has_name;
}

void shuf__name_group(gid_t gid, char text[SHUF__ACCOUNT_NAME])
{
    find_name(gid, text);
}

/* Returns 0, also if there is no such group, or the reason why the groups cannot be read. The line
 * of a group with many members needs a large buffer, even if it is not the line of this group. */
static int look_up_group(const char *name, gid_t *group, bool *found)
{
    char *buffer = NULL;
    struct group entry, *result = NULL;
    int cause = ERANGE;
    for (size_t size = ENTRY_MAX; cause == ERANGE && size <= LINE_MOST; size *= 4) {
        char *larger = realloc(buffer, size);
        if (!larger)
            break;
        buffer = larger;
        cause = getgrnam_r(name, &entry, buffer, size, &result);
    }
    *found = result != NULL;
    if (result)
        *group = result->gr_gid;
    free(buffer);
    if (cause == ERANGE)
        return ENOMEM;
    /* These mean that there is no such group, getgrnam_r(3). Others come from a directory service
     * that does not answer. */
    const bool is_missing = cause == ENOENT || cause == ESRCH || cause == EBADF || cause == EPERM;
    return is_missing ? 0 : cause;
}

int shuf__find_group(const char *name, gid_t *group)
{
    bool found;
    const unsigned long number = strtoul(name, NULL, 10);
    if (*name && strspn(name, "0123456789") == strlen(name) && number < (gid_t)-1) {
        *group = (gid_t)number;
        return 0;
    }
    const int cause = look_up_group(name, group, &found);
    return found ? 0 : cause ? cause : ENOENT;
}

/* Whether the user is a member by the database. */
static bool is_listed(uid_t uid, gid_t group)
{
    char buffer[ENTRY_MAX];
    struct passwd entry, *found = NULL;
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || !found ||
        getgrouplist(entry.pw_name, entry.pw_gid, groups, &count) < 0)
        return false;
    while (count > 0 && groups[count - 1] != group)
        count--;
    return count > 0;
}

void shuf__advise_membership(gid_t group, char text[SHUF__MEMBERSHIP_ADVICE])
{
    char user[SHUF__ACCOUNT_NAME], name[SHUF__ACCOUNT_NAME];
    shuf__name_user(geteuid(), user);
    const bool has_name = find_name(group, name);
    if (shuf__gid_is_overflow(group))
        snprintf(text, SHUF__MEMBERSHIP_ADVICE,
                 "the user namespace of this process does not map its group: run it outside, or "
                 "with a map of this group");
    else if (!has_name)
        snprintf(text, SHUF__MEMBERSHIP_ADVICE,
                 "run the container with --group-add %s, or with supplementalGroups: [%s] in its "
                 "pod",
                 name, name);
    else if (!group_member(group) && is_listed(geteuid(), group))
        snprintf(text, SHUF__MEMBERSHIP_ADVICE,
                 "%s is a member of %s, but not since this login: log in again, or run newgrp %s",
                 user, name, name);
    else
        snprintf(text, SHUF__MEMBERSHIP_ADVICE,
                 "usermod --append --groups %s %s, as root, then log in again", name, user);
}

/* ---- The groups of a client ---- */

static bool find_primary(int socket, gid_t group, bool *is_member)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    *is_member = peer.gid == group;
    return true;
}

/* The first call of getsockopt() sets `size` to the bytes that the groups need. The kernel converts
 * each group, so 65 536 groups, which subordinate gids allow, take 2 ms of the loop. */
static bool find_supplementary(int socket, gid_t group, bool *is_member)
{
    socklen_t size = 0;
    gid_t none;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, &none, &size) == 0)
        return true; /* no groups */
    if (errno == ERANGE && size > SHUF__PEER_GROUPS * sizeof none)
        return true;
    gid_t *groups = errno == ERANGE ? malloc(size) : NULL;
    if (!groups)
        return false;
    const bool ok = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0;
    for (size_t i = 0; ok && i < size / sizeof *groups; i++)
        *is_member |= groups[i] == group;
    free(groups);
    return ok;
}

bool shuf__peer_find_group(int socket, gid_t group, bool *is_member)
{
    return find_primary(socket, group, is_member) &&
           (*is_member || find_supplementary(socket, group, is_member));
}

/* ---- The PID namespace ---- */

uint64_t shuf__pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}
