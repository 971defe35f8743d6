/* SPDX-License-Identifier: MIT
 *
 * See target.h.
 */
#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Digits to the end, or -1. */
static int read_descriptor(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 && number <= INT_MAX ? (int)number : -1;
}

int shuf__target_descriptor(const char *path)
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

/* What came through exec() is without FD_CLOEXEC; the connection to the daemon has it. */
int shuf__target_duplicate(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || flags & FD_CLOEXEC) {
        errno = EBADF;
        return -1;
    }
    return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

bool shuf__target_is_terminal(const char *path)
{
    struct stat status;
    int descriptor = shuf__target_descriptor(path);
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

/* Where the link at `path` points, seen from where `path` is seen from; NULL and errno. */
static char *follow(const char *path)
{
    char text[PATH_MAX], *target = NULL;
    ssize_t length = readlink(path, text, sizeof text);
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash + 1 - path) : 0;
    if (length < 0)
        return NULL;
    if (length == (ssize_t)sizeof text) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (length > 0 && text[0] == '/')
        directory = 0;
    if (asprintf(&target, "%.*s%.*s", directory, path, (int)length, text) < 0)
        return NULL;
    return target;
}

char *shuf__target_resolve(const char *path)
{
    struct stat status;
    char *name = realpath(path, NULL);
    if (name || errno != ENOENT)
        return name;
    /* The last name is missing, perhaps behind links; realpath() has refused a circle. */
    name = strdup(path);
    while (name && lstat(name, &status) == 0 && S_ISLNK(status.st_mode)) {
        char *next = follow(name);
        free(name);
        name = next;
    }
    return name;
}
