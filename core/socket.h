/* SPDX-License-Identifier: MIT
 *
 * The default paths of the daemon's socket. Daemon and clients use the same functions.
 */
#ifndef SHUF__SOCKET_H
#define SHUF__SOCKET_H

#include "error.h"

#include <stddef.h>
#include <sys/un.h>

/* The directory of the sockets of the machine's daemons: shufd.sock, or on a machine with several
 * GPUs one GPU-<uuid>.sock for each GPU. $SHUFD_RUNTIME_DIR replaces the directory. */
#define SHUF__SOCKET_DIRECTORY "/run/shufd"
#define SHUF__SYSTEM_SOCKET SHUF__SOCKET_DIRECTORY "/shufd.sock"
const char *shuf__socket_directory(void);

enum shuf__socket_side { SHUF__SOCKET_SERVE, SHUF__SOCKET_CONNECT };

/* Fills *address with `path`. A relative path becomes absolute if the longer path fits. If `path`
 * is NULL or empty, takes the first of these that applies: 1. $SHUFD_SOCKET. 2. For a daemon with
 * $RUNTIME_DIRECTORY, which systemd sets: shufd.sock in its first directory. 3. For root, or a
 * client without $XDG_RUNTIME_DIR: shufd.sock in the directory above. 4.
 * $XDG_RUNTIME_DIR/shufd.sock. If a client finds no socket there, it takes shufd.sock in the
 * directory above. Fails with SHUF_INVALID if the path is too long for a socket, or if none of the
 * four rules applies to a daemon. */
shuf_status shuf__socket_address(const char *path, enum shuf__socket_side side,
                                 struct sockaddr_un *address, struct shuf__error *error);

/* Appends to the error of a default socket that $SHUFD_SOCKET sets the path, if it does. */
void shuf__socket_explain(struct shuf__error *error);

/* Ends the message of a client on whose socket a daemon is missing. */
#define SHUF__START_HINT "; start a daemon with shufd(8)"

/* The variable or rule that makes this path the default, such as "$XDG_RUNTIME_DIR". NULL: it is
 * not the default path. */
const char *shuf__socket_origin(const char *path, enum shuf__socket_side side);

/* Lists the sockets in the directory above whose names begin with `prefix`, sorted. Returns their
 * number, at most `most`. */
size_t shuf__socket_list(const char *prefix, struct sockaddr_un *addresses, size_t most);

#endif
