/* SPDX-License-Identifier: MIT
 *
 * See process.h.
 */
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

struct shuf__pidfd {
    int fd;
    uv_poll_t poll;
    struct shuf__process *process;
};

/* ---- the table ---- */

static struct shuf__process_list *list_of(const struct shuf__processes *processes, pid_t pid)
{
    return (struct shuf__process_list *)&processes->lists[(unsigned)pid % SHUF__PROCESS_LISTS];
}

static struct shuf__process *find(const struct shuf__processes *processes, pid_t pid)
{
    struct shuf__process *process;
    LIST_FOREACH (process, list_of(processes, pid), link)
        if (process->pid == pid && pid > 0)
            break;
    return process;
}

void shuf__processes_init(struct shuf__processes *processes, uv_loop_t *loop,
                          struct shuf__accounts *accounts)
{
    processes->loop = loop;
    processes->accounts = accounts;
    processes->count = 0;
    for (unsigned i = 0; i < SHUF__PROCESS_LISTS; i++)
        LIST_INIT(&processes->lists[i]);
}

bool shuf__processes_have(const struct shuf__processes *processes, pid_t pid)
{
    return find(processes, pid) != NULL;
}

static struct shuf__process *add(struct shuf__processes *processes, pid_t pid, uint32_t uid)
{
    struct shuf__process *process = calloc(1, sizeof *process);
    struct shuf__account *account = process ? shuf__account_of(processes->accounts, uid) : NULL;
    if (!account) {
        free(process);
        return NULL;
    }
    process->all = processes;
    process->pid = pid;
    process->account = account;
    account->processes++;
    processes->count++;
    LIST_INIT(&process->observers);
    LIST_INSERT_HEAD(list_of(processes, pid), process, link);
    return process;
}

struct shuf__process *shuf__process_of(struct shuf__processes *processes, pid_t pid, uint32_t uid)
{
    struct shuf__process *process = find(processes, pid);
    if (!process && !(process = add(processes, pid, uid)))
        return NULL;
    return shuf__process_ref(process);
}

struct shuf__process *shuf__process_ref(struct shuf__process *process)
{
    process->refs++;
    return process;
}

static void free_pidfd(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_pidfd(struct shuf__process *process)
{
    if (!process->pidfd)
        return;
    uv_close((uv_handle_t *)&process->pidfd->poll, free_pidfd);
    close(process->pidfd->fd);
    process->pidfd = NULL;
}

void shuf__process_unref(struct shuf__process *process)
{
    assert(process->refs > 0);
    if (--process->refs > 0)
        return;
    close_pidfd(process);
    LIST_REMOVE(process, link);
    process->all->count--;
    process->account->processes--;
    shuf__account_unref(process->account);
    free(process);
}

/* ---- the end of a process ---- */

static void end(struct shuf__process *process)
{
    struct shuf__process_observer *observer;
    process->refs++; /* until this function ends */
    close_pidfd(process);
    while ((observer = LIST_FIRST(&process->observers)) != NULL) {
        shuf__process_stop_observing(observer);
        observer->ended(observer);
    }
    shuf__process_unref(process);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    const struct shuf__pidfd *pidfd = poll->data;
    (void)status;
    (void)events;
    end(pidfd->process);
}

static bool has_ended(int pidfd)
{
    struct pollfd poll_once = {.fd = pidfd, .events = POLLIN};
    return poll(&poll_once, 1, 0) != 0;
}

/* Without SO_PEERPIDFD, a process that got the PID after the end of the client would be taken for
 * the client. glibc has pidfd_open() only since 2.36. */
static int open_peer(int socket, pid_t pid)
{
    int fd = -1;
    socklen_t size = sizeof fd;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
        return fd;
    return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* Opens a pidfd of a living process. */
static int open_living(int socket, pid_t pid)
{
    const int fd = open_peer(socket, pid);
    if (fd < 0 || !has_ended(fd))
        return fd;
    close(fd);
    errno = ESRCH;
    return -1;
}

bool shuf__process_is_observable(int socket, pid_t pid)
{
    const int fd = open_living(socket, pid);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool keep_pidfd(struct shuf__process *process, int fd)
{
    struct shuf__pidfd *pidfd = malloc(sizeof *pidfd);
    if (!pidfd || uv_poll_init(process->all->loop, &pidfd->poll, fd) != 0) {
        free(pidfd);
        close(fd);
        errno = ENOMEM;
        return false;
    }
    pidfd->fd = fd;
    pidfd->process = process;
    pidfd->poll.data = pidfd;
    process->pidfd = pidfd;
    uv_poll_start(&pidfd->poll, UV_READABLE, on_readable);
    uv_unref((uv_handle_t *)&pidfd->poll); /* the daemon does not wait for its clients to end */
    return true;
}

bool shuf__process_observe(struct shuf__process *process, int socket,
                           struct shuf__process_observer *observer)
{
    const int fd = open_living(socket, process->pid);
    if (fd < 0)
        return false;
    if (process->pidfd && has_ended(process->pidfd->fd))
        end(process); /* another process has its PID now, and this one is its client */
    if (process->pidfd)
        close(fd);
    else if (!keep_pidfd(process, fd))
        return false;
    observer->observes = true;
    LIST_INSERT_HEAD(&process->observers, observer, link);
    return true;
}

void shuf__process_stop_observing(struct shuf__process_observer *observer)
{
    if (observer->observes)
        LIST_REMOVE(observer, link);
    observer->observes = false;
}
