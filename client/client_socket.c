/* SPDX-License-Identifier: MIT
 *
 * See client_socket.h.
 */
#include "client_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
