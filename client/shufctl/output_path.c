/* SPDX-License-Identifier: MIT
 *
 * See output_path.h.
 */
#include "output_path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
