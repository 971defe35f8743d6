/* SPDX-License-Identifier: MIT
 *
 * The socket of a connection, and its file. The descriptor never gets the number of a closed
 * standard stream, because output to that stream would then go to the daemon.
 */
#ifndef SHUF__CLIENT_SOCKET_H
#define SHUF__CLIENT_SOCKET_H

#include "error.h"

#include <stdbool.h>

/* Returns a descriptor above those of the standard streams; -1 with errno. */
int shuf__client_socket(void);

/* True if the path exists, but is not a socket. */
bool shuf__is_other_file(const char *path);

/* Fails with SHUF_DENIED. The text names the socket's owner, group and mode, and how the user can
 * get access. */
shuf_status shuf__fail_denied(const char *path, struct shuf__error *error);

/* Whether the socket was made or changed in the last second. A service manager first makes it, and
 * then gives it to its group. */
bool shuf__is_new_socket(const char *path);

#endif
