/* SPDX-License-Identifier: MIT
 *
 * See lock.h. A process may open the file just before its owner unlinks it. So after locking, a
 * process checks that the path still names the file that it has locked.
 */
#include "lock.h"

#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_MS = 5000, /* how long to wait for the end of a killed owner */
    POLL_MS = 20,   /* time between two attempts */
};

/* Flags of a task in /proc/PID/stat: PF_EXITING and PF_SIGNALED. No header for programs has them.
 */
enum { TASK_EXITING = 0x4, TASK_SIGNALED = 0x400 };

static const char *const states[] = {
    [SHUF__LOCK_STARTING] = "starting",
    [SHUF__LOCK_SERVING] = "serving",
    [SHUF__LOCK_ENDING] = "ending",
};

/* Whether the lock is in a directory like /tmp, where all users may create files but only remove
 * their own. Its owner is in *directory. */
static bool is_in_shared(const struct shuf__lock *lock, struct stat *directory)
{
    char path[sizeof lock->path];
    strcpy(path, lock->path);
    return stat(dirname(path), directory) == 0 && (directory->st_mode & S_ISVTX) &&
           (directory->st_mode & (S_IWGRP | S_IWOTH));
}

/* Whether another user may have made the file to keep the daemon from starting. The owner of the
 * directory is trusted. */
static bool is_foreign(const struct shuf__lock *lock, const struct stat *file)
{
    struct stat directory;
    return is_in_shared(lock, &directory) && file->st_uid != geteuid() &&
           file->st_uid != directory.st_uid;
}

/* Removes a file of another user, which only root and the owner of the directory may do. False: it
 * cannot be removed. */
static bool remove_foreign(const struct shuf__lock *lock, struct shuf__error *error)
{
    struct stat file;
    if (lstat(lock->path, &file) != 0 || !is_foreign(lock, &file) || unlink(lock->path) == 0)
        return true;
    shuf__fail(
        error, SHUF_OK,
        "lock %s: a file of uid %ld; continuing without a lock, because other users may create "
        "files there",
        lock->path, (long)file.st_uid);
    return false;
}

/* O_NONBLOCK: a user who has a lease on a file of its own does not make the daemon wait. First
 * opens an existing file, and then tries to create one. A single open() with O_CREAT would fail for
 * a file of another user in a sticky directory, even for root (fs.protected_regular). */
static int open_file(const char *path)
{
    for (;;) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
    struct stat status, directory;
    if (cause == EACCES && lstat(lock->path, &status) == 0)
        return shuf__fail(error, SHUF_DENIED,
                          "lock %s: a file of uid %ld; %s if no shufd runs there", lock->path,
                          (long)status.st_uid,
                          is_in_shared(lock, &directory) ? "ask root to remove it" : "remove it");
    return shuf__fail(error, SHUF_IO,
                      "socket %s: cannot make the lock beside it: %s; expected a directory where "
                      "uid %u may write",
                      socket, strerror(cause), (unsigned)geteuid());
}

static const char *describe_state(const char *state)
{
    if (strcmp(state, states[SHUF__LOCK_STARTING]) == 0)
        return "is starting; try again when it serves";
    if (strcmp(state, states[SHUF__LOCK_ENDING]) == 0)
        return "is ending (draining); try again when it has ended";
    return "runs without its socket, which was removed; its log says whether it makes a new one, "
           "or else end it first";
}

bool shuf__lock_is_dying(pid_t pid)
{
    char path[64], text[512], state = 0;
    unsigned long flags = 0, pending = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return kill(pid, 0) != 0 && errno == ESRCH;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *rest = strrchr(text, ')'); /* the name before it may contain any characters */
    if (!rest || sscanf(rest,
                        ") %c %*s %*s %*s %*s %*s %lu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
                        &state, &flags, &pending) != 3)
        return false;
    return state == 'Z' || state == 'X' || (flags & (TASK_EXITING | TASK_SIGNALED)) != 0 ||
           (pending >> (SIGKILL - 1) & 1) != 0;
}

/* The process that has the lock. It writes "PID STATE NAMESPACE" to the file. */
struct owner {
    pid_t pid;
    char state[16];
    uint64_t namespace; /* the inode number of its PID namespace; 0: unknown */
};

static bool read_owner(int fd, struct owner *owner)
{
    char text[64] = "";
    long number = 0;
    owner->namespace = 0;
    if (pread(fd, text, sizeof text - 1, 0) < 0 ||
        sscanf(text, "%ld %15s %" SCNu64, &number, owner->state, &owner->namespace) < 2)
        return false;
    owner->pid = (pid_t)number;
    return true;
}

/* Another namespace may have another process with this PID, or none. */
static bool is_in_own_namespace(const struct owner *owner)
{
    return owner->namespace == 0 || owner->namespace == shuf__pid_namespace();
}

static bool is_dying(const struct owner *owner)
{
    return is_in_own_namespace(owner) && shuf__lock_is_dying(owner->pid);
}

static shuf_status refuse_held(int fd, const char *socket, struct shuf__error *error)
{
    struct owner owner;
    struct stat status = {.st_uid = (uid_t)-1};
    if (!read_owner(fd, &owner))
        return shuf__fail(error, SHUF_BUSY, "socket %s: locked by an unknown process", socket);
    fstat(fd, &status);
    return shuf__fail(
        error, SHUF_BUSY, "socket %s: shufd, pid %ld%s, uid %ld, %s", socket, (long)owner.pid,
        is_in_own_namespace(&owner) ? "" : " of another PID namespace", (long)status.st_uid,
        is_dying(&owner) ? SHUF__LOCK_DYING : describe_state(owner.state));
}

static bool is_held_by_dying(int fd)
{
    struct owner owner;
    return read_owner(fd, &owner) && is_dying(&owner);
}

/* Locks the file. With `waits`, waits if its owner was killed. Returns 0, or errno. */
static int lock_file(int fd, bool waits)
{
    static const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    int cause = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    for (int waited = 0; cause == EWOULDBLOCK && waits && waited < WAIT_MS && is_held_by_dying(fd);
         waited += POLL_MS) {
        nanosleep(&pause, NULL);
        cause = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    }
    return cause;
}

static bool is_at(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

static bool is_own(const struct shuf__lock *lock, int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 && !is_foreign(lock, &file);
}

static shuf_status refuse_lock(int fd, int cause, const char *socket, struct shuf__error *error)
{
    if (cause == EWOULDBLOCK)
        refuse_held(fd, socket, error);
    else
        shuf__fail(error, SHUF_IO, "socket %s: lock: %s", socket, strerror(cause));
    close(fd);
    return error->status;
}

shuf_status shuf__lock_take(struct shuf__lock *lock, const char *socket, bool waits,
                            struct shuf__error *error)
{
    snprintf(lock->path, sizeof lock->path, "%s.lock", socket);
    while (remove_foreign(lock, error)) {
        int fd = open_file(lock->path);
        if (fd < 0)
            return refuse_open(lock, socket, error);
        const bool is_trusted = is_own(lock, fd);
        const int cause = is_trusted ? lock_file(fd, waits) : 0;
        if (cause != 0)
            return refuse_lock(fd, cause, socket, error);
        if (is_trusted && is_at(fd, lock->path)) {
            lock->fd = fd;
            shuf__lock_set_state(lock, SHUF__LOCK_STARTING);
            return SHUF_OK;
        }
        close(fd);
    }
    return SHUF_OK;
}

bool shuf__lock_is_at_path(const struct shuf__lock *lock)
{
    return lock->fd >= 0 && is_at(lock->fd, lock->path);
}

void shuf__lock_set_state(const struct shuf__lock *lock, enum shuf__lock_state state)
{
    char text[64];
    if (lock->fd < 0)
        return;
    /* The state is padded, so that one write replaces an older text. The rest of a longer text,
     * from a crashed daemon, does not matter: readers stop after the state. */
    int length = snprintf(text, sizeof text, "%ld %-8s %" PRIu64 "\n", (long)getpid(),
                          states[state], shuf__pid_namespace());
    if (pwrite(lock->fd, text, (size_t)length, 0) != length)
        return; /* the lock works without the text */
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
