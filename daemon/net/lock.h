/* SPDX-License-Identifier: MIT
 *
 * The lock of a socket: the file PATH.lock beside it. Only one daemon at a time can hold it. A
 * daemon takes the lock before it binds the socket, and holds it until it has sent its last reply.
 * At its end the daemon removes the file, so the file never blocks another user.
 */
#ifndef SHUFD_LOCK_H
#define SHUFD_LOCK_H

#include "error.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

enum shuf__lock_state {
    SHUF__LOCK_STARTING, /* the owner does not listen yet */
    SHUF__LOCK_SERVING,
    SHUF__LOCK_ENDING, /* the owner listens no more */
};

struct shuf__lock {
    int fd; /* -1: the lock is not held */
    char path[sizeof((struct sockaddr_un *)0)->sun_path + 8];
};

/* Takes the lock. In a directory where all users may create files, it removes a file of another
 * user first. If that fails, the call succeeds without a lock, and error->text says so. Fails with
 * SHUF_BUSY if a living process holds the lock, with SHUF_DENIED if the file belongs to another
 * user, or with SHUF_IO. The messages for SHUF_BUSY and SHUF_DENIED assume that nobody answers on
 * the socket, so the caller probes the socket before it uses one of them. With `waits`, waits up
 * to five seconds if the owner was killed: the kernel first frees its memory, which takes seconds
 * for many GB, and then closes the file. */
shuf_status shuf__lock_take(struct shuf__lock *lock, const char *socket, bool waits,
                            struct shuf__error *error);

/* The message about an owner for which shuf__lock_is_dying() is true. */
#define SHUF__LOCK_DYING "was killed but has not ended yet; try again"

/* Whether the process was killed or is gone. The kernel may not have closed its files yet. */
bool shuf__lock_is_dying(pid_t pid);

/* Whether the path still names the locked file. False if the lock is not held. */
bool shuf__lock_is_at_path(const struct shuf__lock *lock);

/* Writes the state to the file, for a process that finds the lock held. */
void shuf__lock_set_state(const struct shuf__lock *lock, enum shuf__lock_state state);

/* Removes the file and lets another daemon start. Does nothing if the lock is not held. */
void shuf__lock_release(struct shuf__lock *lock);

#endif
