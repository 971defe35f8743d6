/* SPDX-License-Identifier: MIT
 *
 * Makes the socket of a connection. The descriptor never gets the number of a closed standard
 * stream, because output to that stream would then go to the daemon.
 */
#ifndef SHUF__CLIENT_SOCKET_H
#define SHUF__CLIENT_SOCKET_H

#include <stdbool.h>

/* Returns a descriptor above those of the standard streams; -1 with errno. */
int shuf__client_socket(void);

/* True if the path exists, but is not a socket. */
bool shuf__is_other_file(const char *path);

#endif
