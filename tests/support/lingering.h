/* SPDX-License-Identifier: MIT
 *
 * Sockets whose close() takes long: they have SO_LINGER, and unsent bytes to a reader that does not
 * read.
 */
#ifndef TESTS_LINGERING_H
#define TESTS_LINGERING_H

/* Returns a new one, which does not linger yet. */
int lingering_make(void);

/* From now on the close() of the last copy takes long, or no longer does. */
void lingering_arm(int fd);
void lingering_disarm(int fd);

/* Closes the readers, which ends all waits. */
void lingering_end_all(void);

#endif
