/* SPDX-License-Identifier: MIT
 *
 * Where the daemon's socket is when nobody says so: the one rule that daemon
 * and clients share.
 */
#ifndef SHUF__SOCKET_H
#define SHUF__SOCKET_H

#include "error.h"

#include <sys/un.h>

#define SHUF__SYSTEM_SOCKET "/run/shufd/shufd.sock"

enum shuf__socket_side { SHUF__SOCKET_SERVE, SHUF__SOCKET_CONNECT };

/* Fills *address with `path`, or when that is NULL or empty with
 *   $SHUFD_SOCKET,
 *   else /run/shufd/shufd.sock as root (so a service reaches it too, by its
 *        configuration or by $RUNTIME_DIRECTORY, which systemd sets),
 *   else $XDG_RUNTIME_DIR/shufd.sock; a client that finds no socket there
 *        falls back to /run/shufd/shufd.sock.
 * Fails with SHUF_INVALID when the path is longer than a socket's may be, or
 * when there is no such directory variable to serve in. */
shuf_status shuf__socket_address(const char *path, enum shuf__socket_side side,
                                 struct sockaddr_un *address, struct shuf__error *error);

#endif
