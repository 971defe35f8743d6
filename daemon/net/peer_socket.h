/* SPDX-License-Identifier: MIT
 *
 * The sockets of clients. Before Linux 6.16 a client can send descriptors, and the kernel frees
 * them for the daemon in recv() and close(), where they can make it wait without end. So these
 * functions never receive descriptors, and let a process of its own close a socket whose unread
 * messages have descriptors.
 *
 * close() frees these descriptors, and then waits in the kernel as long as their owner likes: for a
 * server of FUSE that does not answer, or for unsent bytes of a socket with SO_LINGER. No signal
 * ends some of these waits, and a process with such a thread cannot end. So a child that has
 * nothing else open has the last copy of the socket when the daemon closes its own. A child that
 * waits has no memory.
 *
 * The first children close one socket each. While these wait, further sockets stay open, up to a
 * number, and then one more child closes them together. The number of children is limited. If all
 * of them wait and the sockets that stay open have no room either, the daemon accepts no
 * connections until a child ends.
 *
 * All functions but the first are safe to call from every thread.
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

/* ---- Sockets that wait to be closed ---- */

enum { SHUF__CLOSING_LEAST = 16, SHUF__CLOSING_MOST = 1024 };

/* Sets the number of sockets that may stay open, from LEAST to MOST. At first it is LEAST. */
void shuf__closing_set_room(size_t room);

/* Whether a socket has stayed open. */
bool shuf__closing_waits(void);

/* Uses children that have ended for sockets that have stayed open. Returns false if there is no
 * room for further sockets. Cheap if there are neither. */
bool shuf__closing_continue(void);

/* Closes all sockets that have stayed open, however many children there are. Call it before the
 * process ends. */
void shuf__closing_finish(void);

#endif
