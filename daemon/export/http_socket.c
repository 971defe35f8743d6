/* SPDX-License-Identifier: MIT
 *
 * See http_socket.h.
 */
#include "http_socket.h"

#include "net/listener.h"
#include "net/peer_socket.h"
#include "remedy.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a process listens on the endpoint. */
static bool is_live(const struct shuf__endpoint *endpoint)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int result = fd < 0 ? -1 : connect(fd, &endpoint->address.any, endpoint->length);
    const bool refused = result != 0 && (errno == ECONNREFUSED || errno == ENOENT);
    if (fd >= 0)
        close(fd);
    return !refused;
}

static void remove_stale(const struct shuf__endpoint *endpoint)
{
    struct stat status;
    const char *path = endpoint->address.un.sun_path;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode) && !is_live(endpoint))
        unlink(path);
}

static bool bind_unix(int fd, const struct shuf__endpoint *endpoint, mode_t mode, gid_t group)
{
    const char *path = endpoint->address.un.sun_path;
    remove_stale(endpoint);
    shuf__peer_socket_forbid_descriptors(fd, false);
    const mode_t before = umask(0177);
    const int bound = bind(fd, &endpoint->address.any, endpoint->length);
    umask(before);
    return bound == 0 && (group == (gid_t)-1 || chown(path, (uid_t)-1, group) == 0) &&
           chmod(path, mode) == 0;
}

static bool bind_port(int fd, const struct shuf__endpoint *endpoint)
{
    const int yes = 1; /* else bind() may fail while connections of the last daemon still close */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return bind(fd, &endpoint->address.any, endpoint->length) == 0;
}

static void fail_bind(const struct shuf__endpoint *endpoint, const struct shuf__config *config,
                      struct shuf__error *error)
{
    const bool is_unix = endpoint->family == AF_UNIX;
    const int cause = errno;
    shuf__fail(error, SHUF_IO, "metrics %s%.108s: %s%s", is_unix ? "unix:" : "",
               is_unix ? endpoint->address.un.sun_path : config->metrics, strerror(cause),
               (is_unix ? shuf__remedy_of_socket : shuf__remedy_of_port)(cause));
}

shuf_status shuf__http_socket_open(const struct shuf__endpoint *endpoint,
                                   const struct shuf__config *config, int *fd,
                                   struct shuf__error *error)
{
    gid_t group;
    if (shuf__listener_find_group(config->socket_group, &group, error))
        return error->status;
    *fd = socket(endpoint->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0 &&
        (endpoint->family == AF_UNIX ? bind_unix(*fd, endpoint, (mode_t)config->socket_mode, group)
                                     : bind_port(*fd, endpoint)) &&
        listen(*fd, SOMAXCONN) == 0)
        return SHUF_OK;
    fail_bind(endpoint, config, error);
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return error->status;
}
