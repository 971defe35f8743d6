/* SPDX-License-Identifier: MIT
 *
 * See membership.h.
 */
#include "membership.h"

#include "privilege.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
