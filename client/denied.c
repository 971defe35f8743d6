/* SPDX-License-Identifier: MIT
 *
 * See denied.h.
 */
#include "denied.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MAX_SHOWN = 36,
    ENTRY_MAX = 4096, /* bytes of an entry for a user or group; if it is longer, the message has the
                       * number */
};

static void name_user(uid_t uid, char text[NAME_MAX_SHOWN])
{
    char buffer[ENTRY_MAX];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found)
        snprintf(text, NAME_MAX_SHOWN, "%s", entry.pw_name);
    else
        snprintf(text, NAME_MAX_SHOWN, "%u", (unsigned)uid);
}

static void name_group(gid_t gid, char text[NAME_MAX_SHOWN])
{
    char buffer[ENTRY_MAX];
    struct group entry, *found = NULL;
    if (getgrgid_r(gid, &entry, buffer, sizeof buffer, &found) == 0 && found)
        snprintf(text, NAME_MAX_SHOWN, "%s", entry.gr_name);
    else
        snprintf(text, NAME_MAX_SHOWN, "%u", (unsigned)gid);
}

shuf_status shuf__fail_denied(const char *path, struct shuf__error *error)
{
    char user[NAME_MAX_SHOWN], group[NAME_MAX_SHOWN], own[NAME_MAX_SHOWN], advice[192];
    struct stat status;
    unsigned uid = (unsigned)geteuid();
    if (stat(path, &status) != 0)
        return shuf__fail(error, SHUF_DENIED,
                          "socket %s: permission denied, a directory above it is closed to uid %u",
                          path, uid);
    name_user(status.st_uid, user);
    name_user((uid_t)uid, own);
    name_group(status.st_gid, group);
    const unsigned mode = (unsigned)status.st_mode & 07777;
    if (status.st_gid != 0 && (mode & 060) == 060)
        snprintf(
            advice, sizeof advice,
            "its group may use it: usermod --append --groups %s %s, as root, then log in again",
            group, own);
    else
        snprintf(advice, sizeof advice,
                 "socket_group and socket_mode of the daemon decide, or "
                 "SocketGroup= and SocketMode= of its socket unit");
    return shuf__fail(error, SHUF_DENIED,
                      "socket %s: permission denied for uid %u; it is %s:%s's, mode %04o; %s", path,
                      uid, user, group, mode, advice);
}
