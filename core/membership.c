/* SPDX-License-Identifier: MIT
 *
 * See membership.h.
 */
#include "membership.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum {
    ENTRY_MAX = 4096, /* bytes of an entry for a user or group; of a longer one the text is the
                       * number */
    GROUPS_MAX = 1024,
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

void shuf__name_group(gid_t gid, char text[SHUF__ACCOUNT_NAME])
{
    char buffer[ENTRY_MAX];
    struct group entry, *found = NULL;
    if (getgrgid_r(gid, &entry, buffer, sizeof buffer, &found) == 0 && found)
        snprintf(text, SHUF__ACCOUNT_NAME, "%s", entry.gr_name);
    else
        snprintf(text, SHUF__ACCOUNT_NAME, "%u", (unsigned)gid);
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
    shuf__name_group(group, name);
    if (!group_member(group) && is_listed(geteuid(), group))
        snprintf(text, SHUF__MEMBERSHIP_ADVICE,
                 "%s is a member of %s, but not since this login: log in again, or run newgrp %s",
                 user, name, name);
    else
        snprintf(text, SHUF__MEMBERSHIP_ADVICE,
                 "usermod --append --groups %s %s, as root, then log in again", name, user);
}
