/* SPDX-License-Identifier: MIT
 *
 * See output_path.h.
 */
#include "output_path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Parses a whole number; -1 if `text` is not a number. */
static int read_descriptor(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 && number <= INT_MAX ? (int)number : -1;
}

int shuf__output_path_descriptor(const char *path)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (strncmp(path, directories[i], strlen(directories[i])) == 0)
            return read_descriptor(path + strlen(directories[i]));
    return -1;
}

/* Refuses descriptors with the flag FD_CLOEXEC: shufctl has opened them itself. Inherited
 * descriptors do not have this flag. */
int shuf__output_path_duplicate(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || flags & FD_CLOEXEC) {
        errno = EBADF;
        return -1;
    }
    return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

bool shuf__output_path_is_terminal(const char *path)
{
    struct stat status;
    int descriptor = shuf__output_path_descriptor(path);
    if (descriptor >= 0)
        return isatty(descriptor);
    if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode))
        return false;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool terminal = isatty(fd);
    close(fd);
    return terminal;
}

bool shuf__output_path_is_direct(const char *path)
{
    struct stat status;
    return shuf__output_path_descriptor(path) >= 0 ||
           (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

/* ---- symbolic links ---- */

enum { LINKS = 40 }; /* as the kernel allows */

struct walk {
    char resolved[PATH_MAX]; /* without links; "" is the root directory */
    char rest[2 * PATH_MAX]; /* still to be resolved */
    int links;
};

static bool fail(int error)
{
    errno = error;
    return false;
}

/* Refuses a link of another user in a directory where everybody may create files, such as /tmp: the
 * link may be there to redirect the output. The kernel has the same rule for
 * fs.protected_symlinks; see proc(5). */
static bool may_follow(const char *directory, const struct stat *link)
{
    struct stat parent;
    if (lstat(*directory ? directory : "/", &parent))
        return false;
    const mode_t shared = S_ISVTX | S_IWOTH;
    if ((parent.st_mode & shared) != shared || link->st_uid == geteuid() ||
        link->st_uid == parent.st_uid)
        return true;
    return fail(SHUF__FOREIGN_LINK);
}

static bool set_rest(struct walk *walk, const char *text)
{
    if (strlen(text) >= sizeof walk->rest)
        return fail(ENAMETOOLONG);
    memmove(walk->rest, text, strlen(text) + 1);
    if (walk->rest[0] == '/')
        walk->resolved[0] = '\0';
    return true;
}

static bool follow_link(struct walk *walk, const char *path, const struct stat *link)
{
    char target[PATH_MAX], text[sizeof walk->rest];
    if (++walk->links > LINKS)
        return fail(ELOOP);
    if (!may_follow(walk->resolved, link))
        return false;
    const ssize_t length = readlink(path, target, sizeof target);
    if (length < 0)
        return false;
    const int bytes = snprintf(text, sizeof text, "%.*s%s", (int)length, target, walk->rest);
    return bytes < (int)sizeof text ? set_rest(walk, text) : fail(ENAMETOOLONG);
}

static void drop_last(struct walk *walk)
{
    char *slash = strrchr(walk->resolved, '/');
    if (slash)
        *slash = '\0';
}

/* The next component of the rest, which may be missing if it is the last. */
static bool enter(struct walk *walk, const char *name)
{
    struct stat status;
    char path[PATH_MAX];
    const bool last = *walk->rest == '\0';
    if (snprintf(path, sizeof path, "%s/%s", walk->resolved, name) >= (int)sizeof path)
        return fail(ENAMETOOLONG);
    const bool exists = lstat(path, &status) == 0;
    if (!exists && !(errno == ENOENT && last))
        return false;
    if (exists && S_ISLNK(status.st_mode))
        return follow_link(walk, path, &status);
    if (exists && !S_ISDIR(status.st_mode) && !last)
        return fail(ENOTDIR);
    strcpy(walk->resolved, path);
    return true;
}

static bool step(struct walk *walk)
{
    char name[PATH_MAX];
    const size_t skip = strspn(walk->rest, "/"), length = strcspn(walk->rest + skip, "/");
    if (length >= sizeof name)
        return fail(ENAMETOOLONG);
    snprintf(name, sizeof name, "%.*s", (int)length, walk->rest + skip);
    memmove(walk->rest, walk->rest + skip + length, strlen(walk->rest + skip + length) + 1);
    if (strcmp(name, "..") == 0)
        drop_last(walk);
    else if (*name && strcmp(name, ".") != 0)
        return enter(walk, name);
    return true;
}

char *shuf__resolve_path(const char *path)
{
    struct walk walk = {.links = 0};
    if (!*path) {
        errno = ENOENT;
        return NULL;
    }
    if (path[0] != '/' && !getcwd(walk.resolved, sizeof walk.resolved))
        return NULL;
    if (!set_rest(&walk, path))
        return NULL;
    if (strcmp(walk.resolved, "/") == 0)
        walk.resolved[0] = '\0';
    while (*walk.rest)
        if (!step(&walk))
            return NULL;
    return strdup(*walk.resolved ? walk.resolved : "/");
}
