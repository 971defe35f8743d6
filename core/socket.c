/* SPDX-License-Identifier: MIT
 *
 * See socket.h.
 */
#include "socket.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static shuf_status set_path(struct sockaddr_un *address, struct shuf__error *error,
                            const char *directory, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path, sizeof address->sun_path, "%s%s", directory, path);
    if (length < 0 || (size_t)length >= sizeof address->sun_path)
        return shuf__fail(error, SHUF_INVALID,
                          "socket %.100s%.100s: %d bytes, expected at most %zu", directory, path,
                          length, sizeof address->sun_path - 1);
    return SHUF_OK;
}

shuf_status shuf__socket_address(const char *path, enum shuf__socket_side side,
                                 struct sockaddr_un *address, struct shuf__error *error)
{
    if (!path || !*path)
        path = variable("SHUFD_SOCKET");
    if (path)
        return set_path(address, error, "", path);
    const char *service = side == SHUF__SOCKET_SERVE ? variable("RUNTIME_DIRECTORY") : NULL;
    if (service)
        return set_path(address, error, service, "/shufd.sock");
    const char *own = variable("XDG_RUNTIME_DIR");
    if (geteuid() == 0 || (!own && side == SHUF__SOCKET_CONNECT))
        return set_path(address, error, "", SHUF__SYSTEM_SOCKET);
    if (!own)
        return shuf__fail(error, SHUF_INVALID,
                          "socket: not given, and XDG_RUNTIME_DIR is not set; expected --socket "
                          "PATH or $SHUFD_SOCKET");
    shuf_status status = set_path(address, error, own, "/shufd.sock");
    if (status == SHUF_OK && side == SHUF__SOCKET_CONNECT && access(address->sun_path, F_OK) != 0)
        return set_path(address, error, "", SHUF__SYSTEM_SOCKET);
    return status;
}
