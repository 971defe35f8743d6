/* SPDX-License-Identifier: MIT
 *
 * The listening socket of the HTTP server.
 */
#ifndef SHUFD_HTTP_SOCKET_H
#define SHUFD_HTTP_SOCKET_H

#include "config/config.h"
#include "config/endpoint.h"

/* Opens a non-blocking, listening socket. A Unix socket gets the mode and group of the daemon's own
 * socket. If no process listens on an existing Unix socket, replaces it. Fails with SHUF_IO. */
shuf_status shuf__http_socket_open(const struct shuf__endpoint *endpoint,
                                   const struct shuf__config *config, int *fd,
                                   struct shuf__error *error);

#endif
