/* SPDX-License-Identifier: MIT
 *
 * Closes sockets whose unread messages have descriptors. close() frees these descriptors, and then
 * waits in the kernel as long as their owner likes: for a server of FUSE that does not answer, or
 * for unsent bytes of a socket with SO_LINGER. No signal ends some of these waits, and a process
 * with such a thread cannot end. So another process, a child that has nothing else open, has the
 * last copy of the socket when the daemon closes its own. A child that waits has no memory.
 *
 * The first children close one socket each. While these wait, further sockets stay open, up to a
 * number, and then one more child closes them together. The number of children is limited. If all
 * of them wait and the sockets that stay open have no room either, the daemon accepts no
 * connections until a child ends.
 *
 * All functions are safe to call from every thread.
 */
#ifndef SHUFD_CLOSING_H
#define SHUFD_CLOSING_H

#include <stdbool.h>
#include <stddef.h>

enum { SHUF__CLOSING_LEAST = 16, SHUF__CLOSING_MOST = 1024 };

/* Sets the number of sockets that may stay open, from LEAST to MOST. At first it is LEAST. */
void shuf__closing_set_room(size_t room);

/* Takes the socket and closes it, soon or later. Exceeds the room rather than wait. */
void shuf__closing_add(int fd);

/* Whether a socket has stayed open. */
bool shuf__closing_waits(void);

/* Uses children that have ended for sockets that have stayed open. Returns false if there is no
 * room for further sockets. Cheap if there are neither. */
bool shuf__closing_continue(void);

/* Closes all sockets that have stayed open, however many children there are. Call it before the
 * process ends. */
void shuf__closing_finish(void);

#endif
