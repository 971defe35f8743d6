/* SPDX-License-Identifier: MIT
 *
 * Finds the daemon of a client that names no socket. shuf_connect(3) has the order.
 */
#ifndef SHUF__DISCOVER_H
#define SHUF__DISCOVER_H

#include "error.h"

#include <sys/un.h>

/* Fails as shuf__socket_address(). */
shuf_status shuf__discover(struct sockaddr_un *address, struct shuf__error *error);

/* Adds to a connection error the places that were tried, in order, with the variable that sets
 * each. */
void shuf__discover_explain(struct shuf__error *error);

/* Ends the error of a client that found no daemon on `path` with the hint to start one. Does not if
 * the path has another kind of file, or if the client must choose one of the running daemons.
 * socket: as in shuf_connect(). */
void shuf__discover_hint_start(const char *path, const char *socket, struct shuf__error *error);

#endif
