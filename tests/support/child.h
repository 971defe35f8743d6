/* SPDX-License-Identifier: MIT
 *
 * Other processes of a test: each runs a function of it, with nothing open but the
 * standard streams and a channel to its parent, and dies with it.
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

/* In the child `body` is called with its end of the channel; when it returns the process has
 * succeeded. An assertion that fails there ends it by SIGABRT. */
struct child child_start(void (*body)(int channel, void *context), void *context);

/* The same as another user. Needs root. */
struct child child_start_as(uid_t uid, void (*body)(int channel, void *context), void *context);

/* One number through the channel, either way; fails when the other side is gone. */
void child_say(int channel, uint64_t number);
uint64_t child_hear(int channel);

/* Waits for its end, which must be a success. */
void child_join(const struct child *child);

/* Ends it by SIGKILL. */
void child_kill(const struct child *child);

#endif
