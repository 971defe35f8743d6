/* SPDX-License-Identifier: MIT
 *
 * The listening socket in the file system: made without ever taking a living
 * daemon's place or deleting what is no socket, and removed at the end.
 */
#ifndef SHUFD_LISTENER_H
#define SHUFD_LISTENER_H

#include "error.h"
#include "lock.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct shuf__listener {
    int fd; /* listening, non-blocking; -1 when closed */
    struct shuf__lock lock;
    struct sockaddr_un address;
    dev_t device; /* of our socket, so that only it is unlinked */
    ino_t inode;
};

/* `mode` and `group` ("" for none) are in force before anybody can connect; of
 * directories only the default path's is made. Fails with SHUF_BUSY, naming the owner,
 * where a daemon lives, SHUF_INVALID for a path or group that cannot be, SHUF_DENIED, or
 * SHUF_IO. */
shuf_status shuf__listener_open(struct shuf__listener *listener, const char *path, mode_t mode,
                                const char *group, struct shuf__error *error);

/* Whether shuf__listener_open would find path, directory and group in order; whether a
 * daemon lives there is not asked. Changes nothing. Fails as it does. */
shuf_status shuf__listener_check(const char *path, const char *group, struct shuf__error *error);

/* Takes no more: closes and unlinks; what had not been accepted is refused. */
void shuf__listener_close(struct shuf__listener *listener);

/* Lets another daemon start. */
void shuf__listener_unlock(struct shuf__listener *listener);

/* Who is at the other end, by SO_PEERCRED; pid 0 when nobody knows. */
struct ucred shuf__peer_of(int fd);

#endif
