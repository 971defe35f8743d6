/* SPDX-License-Identifier: MIT
 *
 * See denied.h.
 */
#include "denied.h"

#include "membership.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

shuf_status shuf__fail_denied(const char *path, struct shuf__error *error)
{
    char user[SHUF__ACCOUNT_NAME], group[SHUF__ACCOUNT_NAME], advice[SHUF__MEMBERSHIP_ADVICE];
    struct stat status;
    unsigned uid = (unsigned)geteuid();
    if (stat(path, &status) != 0)
        return shuf__fail(error, SHUF_DENIED,
                          "socket %s: permission denied, a directory above it is closed to uid %u",
                          path, uid);
    shuf__name_user(status.st_uid, user);
    shuf__name_group(status.st_gid, group);
    const unsigned mode = (unsigned)status.st_mode & 07777;
    const bool is_open = status.st_gid != 0 && (mode & 060) == 060;
    if (is_open)
        shuf__advise_membership(status.st_gid, advice);
    else
        snprintf(advice, sizeof advice,
                 "socket_group and socket_mode of the daemon decide, or "
                 "SocketGroup= and SocketMode= of its socket unit");
    return shuf__fail(error, SHUF_DENIED,
                      "socket %s: permission denied for uid %u; it is %s:%s's, mode %04o; %s%s",
                      path, uid, user, group, mode, is_open ? "its group may use it: " : "",
                      advice);
}
