/* SPDX-License-Identifier: MIT
 *
 * PATH.lock beside a socket: one daemon at a time, from before it binds until its
 * last answer is sent, also while nobody can connect. The file is there only
 * as long as its daemon is, so that it never stands in another user's way.
 */
#ifndef SHUFD_LOCK_H
#define SHUFD_LOCK_H

#include "error.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

enum shuf__lock_state {
    SHUF__LOCK_STARTING, /* nobody listens yet */
    SHUF__LOCK_SERVING,
    SHUF__LOCK_ENDING, /* nobody listens any more */
};

struct shuf__lock {
    int fd; /* -1 while it is not held */
    char path[sizeof((struct sockaddr_un *)0)->sun_path + 8];
};

/* Fails with SHUF_BUSY where a living process holds it, SHUF_DENIED where its file is
 * another user's, or SHUF_IO. The text of the first two is for
 * a socket on which nobody answers. Of a process that was killed the kernel frees the memory
 * first and closes the files last, which takes seconds for many GB: for that it waits. */
shuf_status shuf__lock_take(struct shuf__lock *lock, const char *socket, struct shuf__error *error);

/* What is said of a holder of which this holds. */
#define SHUF__LOCK_DYING "was killed and is not all gone yet; try again"

/* Whether the process was killed, or is gone, though files of its may still be open. */
bool shuf__lock_is_dying(pid_t pid);

/* Tells those who find it held. */
void shuf__lock_tell(const struct shuf__lock *lock, enum shuf__lock_state state);

/* Removes the file and lets another daemon start; nothing where it is not held. */
void shuf__lock_release(struct shuf__lock *lock);

#endif
