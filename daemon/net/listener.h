/* SPDX-License-Identifier: MIT
 *
 * The listening socket, which the service manager passes or the daemon opens. A new socket never
 * replaces the socket of a running daemon, or a file that is not a socket. At its end the daemon
 * removes the socket that it has opened. shuf__peer_of() names the process at the other end of a
 * connection.
 */
#ifndef SHUFD_LISTENER_H
#define SHUFD_LISTENER_H

#include "error.h"
#include "lock.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>

struct shuf__listener {
    int fd;         /* listening, non-blocking; -1 when closed */
    bool is_passed; /* by the service manager, which owns its file */
    bool is_hidden; /* passed, and the sandbox of the daemon hides its file */
    struct shuf__lock lock;
    struct sockaddr_un address;
    dev_t device; /* device and inode of the file at the path; inode 0: none */
    ino_t inode;
    struct timespec born; /* of the file, because a new file may have its inode number */
};

/* Takes the socket that the service manager has passed, else opens a socket at `path`. Sets `mode`
 * and `group` ("": no change) before clients can connect. Makes the directory only for the default
 * path. On success error->text is a warning, or "". Fails with SHUF_BUSY if a daemon uses the path;
 * the message names this daemon. Fails with SHUF_INVALID for an invalid path or group, or if the
 * service manager has passed a socket to another process and no path is given. Fails with
 * SHUF_DENIED, or with SHUF_IO. */
shuf_status shuf__listener_open(struct shuf__listener *listener, const char *path, mode_t mode,
                                const char *group, struct shuf__error *error);

/* Checks path, directory and group like shuf__listener_open(), but not whether a daemon uses the
 * path. Changes nothing. */
shuf_status shuf__listener_check(const char *path, const char *group, struct shuf__error *error);

/* Whether the path still names the socket. True if it is hidden. */
bool shuf__listener_is_at_path(const struct shuf__listener *listener);

/* Makes the socket again, because its path no longer names it. Connections that are not accepted
 * yet are refused. If it fails, as shuf__listener_open(), the old socket stays. */
shuf_status shuf__listener_open_again(struct shuf__listener *listener, mode_t mode,
                                      const char *group, struct shuf__error *error);

/* Closes and unlinks the socket. Connections that are not accepted yet are refused. A passed socket
 * stays open in the service manager, so its connections wait for the next daemon. */
void shuf__listener_close(struct shuf__listener *listener);

/* Releases the lock, so that another daemon can start. */
void shuf__listener_unlock(struct shuf__listener *listener);

/* The socket that a service manager passes (sd_listen_fds(3)). The service manager keeps the
 * socket, so connections wait in its backlog while the daemon restarts. Sets *fd to the socket, or
 * to -1 if the process was passed no descriptors; if another process was, error->text and
 * error->status say so. Fails with SHUF_INVALID if none of the
 * descriptors is a listening Unix socket of that name. A process may call it once. */
shuf_status shuf__activation_take(int *fd, struct shuf__error *error);

/* The process at the other end of a socket, by SO_PEERCRED. If the kernel does not tell it, its pid
 * is 0, its uid is -1, which no user has, and errno has the reason. */
struct ucred shuf__peer_of(int fd);

static inline bool shuf__peer_is_known(const struct ucred *peer)
{
    return peer->uid != (uid_t)-1;
}

#endif
