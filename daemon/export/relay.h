/* SPDX-License-Identifier: MIT
 *
 * Stands between the clients of a Unix socket and a server that uses recv() and close() itself,
 * such as libmicrohttpd. The server gets one end of a pair of sockets for each client. So
 * descriptors that a client sends cannot make it wait (net/peer_socket.h).
 */
#ifndef SHUFD_RELAY_H
#define SHUFD_RELAY_H

#include <sys/socket.h>

struct shuf__relay;

enum { SHUF__RELAY_MOST = 32 }; /* clients at a time; others wait in the backlog */

/* Starts a thread that accepts clients. For each it calls connected(), which takes the descriptor.
 * The client is cut off when the server closes this descriptor, at the latest after ten seconds.
 * Takes the listening socket, which does not block. Returns NULL if there is no thread, no memory
 * or no descriptor, and then leaves the listening socket to its caller. */
struct shuf__relay *shuf__relay_start(int listening,
                                      void (*connected)(void *context, int fd,
                                                        const struct ucred *client),
                                      void *context);

/* Cuts off the clients and frees the relay. NULL has no effect. */
void shuf__relay_stop(struct shuf__relay *relay);

#endif
