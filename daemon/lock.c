/* SPDX-License-Identifier: MIT
 *
 * See lock.h. Who unlinks a locked file must reckon with somebody who opened it just
 * before, so whoever locks looks afterwards whether the path still names that file.
 */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const states[] = {
    [SHUF__LOCK_STARTING] = "starting",
    [SHUF__LOCK_SERVING] = "serving",
    [SHUF__LOCK_ENDING] = "ending",
};

/* In two steps: a plain O_CREAT refuses another user's file in a sticky directory,
 * even to root (fs.protected_regular). */
static int open_file(const char *path)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 || errno != ENOENT)
            return fd;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
}

static shuf_status refuse_open(const struct shuf__lock *lock, const char *socket,
                               struct shuf__error *error)
{
    int cause = errno;
    struct stat status;
    if (cause == EACCES && lstat(lock->path, &status) == 0)
        return shuf__fail(error, SHUF_DENIED,
                          "lock %s: a file of uid %ld; remove it if no shufd runs there",
                          lock->path, (long)status.st_uid);
    return shuf__fail(error, SHUF_IO, "socket %s: lock: %s", socket, strerror(cause));
}

static const char *plight_of(const char *state)
{
    if (strcmp(state, states[SHUF__LOCK_STARTING]) == 0)
        return "is starting; try again when it has";
    if (strcmp(state, states[SHUF__LOCK_ENDING]) == 0)
        return "is ending (draining); try again when it has";
    return "runs without its socket, which was removed; end it first";
}

/* The holder wrote "PID STATE" there. */
static shuf_status refuse_held(int fd, const char *socket, struct shuf__error *error)
{
    char text[64] = "", state[16] = "";
    long pid = 0;
    struct stat status = {.st_uid = (uid_t)-1};
    if (pread(fd, text, sizeof text - 1, 0) < 0 || sscanf(text, "%ld %15s", &pid, state) != 2)
        return shuf__fail(error, SHUF_BUSY, "socket %s: locked, by whom is not known", socket);
    fstat(fd, &status);
    return shuf__fail(error, SHUF_BUSY, "socket %s: shufd, pid %ld, uid %ld, %s", socket, pid,
                      (long)status.st_uid, plight_of(state));
}

static bool is_at(int fd, const char *path)
{
    struct stat held, there;
    return fstat(fd, &held) == 0 && lstat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

shuf_status shuf__lock_take(struct shuf__lock *lock, const char *socket, struct shuf__error *error)
{
    snprintf(lock->path, sizeof lock->path, "%s.lock", socket);
    for (;;) {
        int fd = open_file(lock->path);
        if (fd < 0)
            return refuse_open(lock, socket, error);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK)
                refuse_held(fd, socket, error);
            else
                shuf__fail(error, SHUF_IO, "socket %s: lock: %s", socket, strerror(errno));
            close(fd);
            return error->status;
        }
        if (is_at(fd, lock->path)) {
            lock->fd = fd;
            shuf__lock_tell(lock, SHUF__LOCK_STARTING);
            return SHUF_OK;
        }
        close(fd);
    }
}

void shuf__lock_tell(const struct shuf__lock *lock, enum shuf__lock_state state)
{
    char text[64];
    if (lock->fd < 0)
        return;
    /* Padded, so that one write replaces all of the old text. A crashed daemon's may be
     * longer; what follows the state is not read. */
    int length = snprintf(text, sizeof text, "%ld %-8s\n", (long)getpid(), states[state]);
    if (pwrite(lock->fd, text, (size_t)length, 0) != length)
        return; /* it only tells; the lock holds without it */
}

void shuf__lock_release(struct shuf__lock *lock)
{
    if (lock->fd < 0)
        return;
    if (is_at(lock->fd, lock->path))
        unlink(lock->path);
    close(lock->fd);
    lock->fd = -1;
}
