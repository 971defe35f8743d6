/* SPDX-License-Identifier: MIT
 *
 * See temporary_file.h.
 */
#include "temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *shuf__temporary_directory(void)
{
    const char *directory = getenv("TMPDIR");
    return directory && *directory ? directory : "/tmp";
}

/* For a file system without O_TMPFILE. */
static int open_named(const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/shufctl-XXXXXX", directory) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

int shuf__temporary_file(void)
{
    const char *directory = shuf__temporary_directory();
    int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    return fd < 0 && errno != EACCES && errno != ENOENT ? open_named(directory) : fd;
}
