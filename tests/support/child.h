/* SPDX-License-Identifier: MIT
 *
 * Child processes of a test, and the descriptors of the test itself. A child runs a function of the
 * test. It has only the standard streams and a channel to its parent open, and dies with its
 * parent.
 */
#ifndef SHUF__TEST_CHILD_H
#define SHUF__TEST_CHILD_H

#include <stdint.h>
#include <sys/types.h>

enum { CHILD_NOBODY = 65534 }; /* a user without any rights */

struct child {
    pid_t pid;
    int channel;
};

/* The child calls `body` with its end of the channel, and succeeds when `body` returns. A failed
 * assertion in the child ends it with SIGABRT. */
struct child child_start(void (*body)(int channel, void *context), void *context);

/* The same, as another user. Needs root. */
struct child child_start_as(uid_t uid, void (*body)(int channel, void *context), void *context);

/* Sends or receives one number through the channel. Fails if the other side has ended. */
void child_send(int channel, uint64_t number);
uint64_t child_receive(int channel);

/* Waits for the end of the child, which must be a success. */
void child_join(const struct child *child);

/* Ends the child by SIGKILL. */
void child_kill(const struct child *child);

/* ---- Descriptors, to find leaks ---- */

/* Entries of the directory; fails the test if it cannot be opened. */
int count_entries(const char *path);

/* The number of open descriptors of this process, plus a constant. */
int count_descriptors(void);

#endif
