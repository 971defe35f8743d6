/* SPDX-License-Identifier: MIT
 *
 * The default places of the daemon's socket, which daemon and clients share.
 */
#ifndef SHUF__SOCKET_H
#define SHUF__SOCKET_H

#include "error.h"

#include <stddef.h>
#include <sys/un.h>

/* The sockets of the machine's daemons: shufd.sock, and GPU-<uuid>.sock of an instance.
 * $SHUFD_RUNTIME_DIR replaces the directory. */
#define SHUF__SOCKET_DIRECTORY "/run/shufd"
#define SHUF__SYSTEM_SOCKET SHUF__SOCKET_DIRECTORY "/shufd.sock"
const char *shuf__socket_directory(void);

enum shuf__socket_side { SHUF__SOCKET_SERVE, SHUF__SOCKET_CONNECT };

/* Fills *address with `path`, or when that is NULL or empty with
 *   $SHUFD_SOCKET,
 *   else shufd.sock in the directory above as root (so a service reaches it too, by its
 *        configuration or by $RUNTIME_DIRECTORY, which systemd sets),
 *   else $XDG_RUNTIME_DIR/shufd.sock; a client that finds no socket there
 *        falls back to the one in the directory above.
 * Fails with SHUF_INVALID when the path is longer than a socket's may be, or
 * when there is no such directory variable to serve in. */
shuf_status shuf__socket_address(const char *path, enum shuf__socket_side side,
                                 struct sockaddr_un *address, struct shuf__error *error);

/* What makes this the default path, such as "$XDG_RUNTIME_DIR"; NULL: it is no default path. */
const char *shuf__socket_origin(const char *path, enum shuf__socket_side side);

/* The sockets in the directory above whose names begin with `prefix`, sorted. Returns their number,
 * at most `most`. */
size_t shuf__socket_list(const char *prefix, struct sockaddr_un *addresses, size_t most);

#endif
