/* SPDX-License-Identifier: MIT
 *
 * The sockets of clients. Before Linux 6.16 a client can send descriptors, and the kernel frees
 * them for the daemon in recv() and close(), where they can make it wait without end. So these
 * functions never receive descriptors, and let a process of its own close their sockets
 * (closing.h).
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
 * from now on those of a client that connected before the call above, too. Fails with EUSERS if too
 * many sockets wait to be closed. */
int shuf__peer_socket_accept(int listening);

/* As recv() with MSG_DONTWAIT. Fails with EBADMSG if the next bytes have descriptors. */
ssize_t shuf__peer_socket_receive(int fd, void *bytes, size_t size);

/* Closes the socket of a client. */
void shuf__peer_socket_close(int fd);

/* Closes a listening socket, and the connections in its backlog if it was the last copy. */
void shuf__peer_socket_close_listening(int fd);

#endif
