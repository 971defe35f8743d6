/* SPDX-License-Identifier: MIT
 *
 * See client_socket.h.
 */
#include "client_socket.h"

#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int shuf__client_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), cause = errno;
    close(fd);
    errno = cause;
    return higher;
}

bool shuf__is_other_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISSOCK(status.st_mode);
}

bool shuf__is_new_socket(const char *path)
{
    struct stat status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (stat(path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return false;
    const time_t age = now.tv_sec - status.st_ctim.tv_sec; /* negative if the clock went back */
    return age >= 0 && age <= 1;
}

/* ---- A user who may not connect ---- */

/* Writes the first directory of the path that this process may not search. */
static void find_closed(const char *path, char directory[PATH_MAX])
{
    snprintf(directory, PATH_MAX, "%s", path);
    for (char *slash = directory; (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        if (faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) != 0)
            return;
    }
}

static shuf_status fail_closed(const char *path, unsigned uid, struct shuf__error *error)
{
    char directory[PATH_MAX], user[SHUF__ACCOUNT_NAME], group[SHUF__ACCOUNT_NAME];
    struct stat status;
    find_closed(path, directory);
    if (stat(directory, &status) != 0)
        return shuf__fail(error, SHUF_DENIED,
                          "socket %s: permission denied, a directory above it is closed to uid %u",
                          path, uid);
    shuf__name_user(status.st_uid, user);
    shuf__name_group(status.st_gid, group);
    return shuf__fail(
        error, SHUF_DENIED,
        "socket %s: permission denied: uid %u may not search %s, which is %s:%s's, mode "
        "%04o; its owner or root can permit it, as with chmod o+x",
        path, uid, directory, user, group, (unsigned)status.st_mode & 07777);
}

shuf_status shuf__fail_denied(const char *path, struct shuf__error *error)
{
    char user[SHUF__ACCOUNT_NAME], group[SHUF__ACCOUNT_NAME], advice[SHUF__MEMBERSHIP_ADVICE];
    struct stat status;
    unsigned uid = (unsigned)geteuid();
    if (stat(path, &status) != 0)
        return fail_closed(path, uid, error);
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
