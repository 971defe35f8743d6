/* SPDX-License-Identifier: MIT
 *
 * recv() and close() of the sockets of clients. Before Linux 6.16 a client can send descriptors,
 * and these calls then close them for the daemon. The kernel waits in them as long as the client
 * likes if such a descriptor is a socket with unsent bytes and SO_LINGER. Here a signal ends the
 * wait.
 */
#ifndef SHUFD_PEER_SOCKET_H
#define SHUFD_PEER_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lets the clients of a listening socket send no descriptors, which no request needs, if the kernel
 * can refuse them. It does not refuse those of clients that have connected before the call. Call it
 * before other threads use the functions below. */
void shuf__peer_socket_forbid_descriptors(int fd, bool has_clients);

/* As accept4(), with a socket that does not block. If the kernel can refuse descriptors, it refuses
 * from now on those of a client that connected before the call above, too. */
int shuf__peer_socket_accept(int listening);

/* As recv() with MSG_DONTWAIT. */
ssize_t shuf__peer_socket_receive(int fd, void *bytes, size_t size);

void shuf__peer_socket_close(int fd);

#endif
