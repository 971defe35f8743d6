/* SPDX-License-Identifier: MIT
 *
 * The listening socket in the file system. It never replaces the socket of a running daemon or a
 * file that is no socket, and it is removed at the end.
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

/* Takes the socket that the service manager passed (activation.h), else opens its own at `path`:
 * sets `mode` and `group` ("" for none) before clients can connect. Makes the directory of the
 * default path only. On success error->text has a warning, or "". Fails with SHUF_BUSY, naming the
 * owner, if a daemon uses the path; with SHUF_INVALID for an invalid path or group, SHUF_DENIED, or
 * SHUF_IO. */
shuf_status shuf__listener_open(struct shuf__listener *listener, const char *path, mode_t mode,
                                const char *group, struct shuf__error *error);

/* Checks path, directory and group as shuf__listener_open does, but not whether a daemon uses the
 * path. Changes nothing. */
shuf_status shuf__listener_check(const char *path, const char *group, struct shuf__error *error);

/* Closes and unlinks the socket; connections that are not accepted yet are refused. A passed socket
 * stays open in the service manager, and its connections wait for the next daemon. */
void shuf__listener_close(struct shuf__listener *listener);

/* Lets another daemon start. */
void shuf__listener_unlock(struct shuf__listener *listener);

/* The group of that name or number; -1, which chown() ignores, for "". Fails with SHUF_INVALID. */
shuf_status shuf__listener_find_group(const char *name, gid_t *gid, struct shuf__error *error);

/* The process at the other end, by SO_PEERCRED; pid 0 if it is not known. */
struct ucred shuf__peer_of(int fd);

#endif
