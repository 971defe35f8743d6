/* SPDX-License-Identifier: MIT
 *
 * PATH.lock beside a socket: it admits one daemon at a time, from before the daemon binds until it
 * has sent its last reply. The daemon removes the file at its end, so the file never blocks another
 * user.
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

/* A file of another user in a directory where others may create files is removed. If it cannot be,
 * the call succeeds without a lock, and error->text says so. Fails with SHUF_BUSY if a living
 * process holds the lock, with SHUF_DENIED if the file belongs to another user, or with SHUF_IO.
 * The texts of the first two suppose that nobody answers on the socket. Waits for a killed owner:
 * the kernel frees its memory, which takes seconds for many GB, before it closes the file. */
shuf_status shuf__lock_take(struct shuf__lock *lock, const char *socket, struct shuf__error *error);

/* The message about an owner for which shuf__lock_is_dying() is true. */
#define SHUF__LOCK_DYING "was killed and is not all gone yet; try again"

/* Whether the process is killed or gone; the kernel may not have closed its files yet. */
bool shuf__lock_is_dying(pid_t pid);

/* Writes the state for processes that find the lock held. */
void shuf__lock_set_state(const struct shuf__lock *lock, enum shuf__lock_state state);

/* Removes the file and lets another daemon start. Does nothing if the lock is not held. */
void shuf__lock_release(struct shuf__lock *lock);

#endif
