/* SPDX-License-Identifier: MIT
 *
 * Closes sockets whose unread messages have descriptors. close() frees these descriptors, and then
 * waits in the kernel as long as their owner likes: for a server of FUSE that does not answer, or
 * for unsent bytes of a socket with SO_LINGER. No signal ends some of these waits, and a process
 * with such a thread cannot end. So another process, a child that has nothing else open, has the
 * last copy of the socket when the daemon closes its own.
 *
 * A child that waits has no memory. There are a few children at a time. While all of them wait, the
 * next sockets stay open, up to a number, and then one more child closes these together. The
 * descriptors in an unread message count to the limit of the user who sent it (RLIMIT_NOFILE,
 * unix(7)), which also limits the children that one user can keep.
 *
 * All functions are safe to call from every thread.
 */
#ifndef SHUFD_CLOSING_H
#define SHUFD_CLOSING_H

#include <stddef.h>

enum { SHUF__CLOSING_LEAST = 16, SHUF__CLOSING_MOST = 1024 };

/* Sets the number of sockets that may stay open, from LEAST to MOST. At first it is LEAST. */
void shuf__closing_set_room(size_t room);

/* Takes the socket and closes it, soon or later. */
void shuf__closing_add(int fd);

/* Closes sockets that have stayed open, if a child has ended. Cheap if there are none. */
void shuf__closing_continue(void);

/* Closes all sockets that have stayed open. Call it before the process ends. */
void shuf__closing_finish(void);

#endif
