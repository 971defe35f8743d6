/* SPDX-License-Identifier: MIT
 *
 * See closing.h. fork() would copy the page tables of the daemon, which takes milliseconds. So a
 * child shares the daemon's memory, but not its descriptors, and runs only close_alone(), which
 * calls no function that uses the memory of a thread.
 */
#include "closing.h"

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif

/* ThreadSanitizer replaces clone(), for children that have a memory of their own. */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
extern int __clone(int (*run)(void *), void *stack, int flags, void *context, ...);
#define clone __clone
#endif
#endif

enum {
    CHILDREN = 8, /* that may wait before further sockets stay open */
    STACK = 16 << 10,
    PATIENCE_S = 10, /* a child ends if the daemon has ended before its turn */
};

/* The sockets of the last child, and what it shares with the daemon. */
struct order {
    int fds[SHUF__CLOSING_MOST];
    size_t count;
    unsigned files;           /* above all descriptors of the process */
    _Atomic(uint32_t) closed; /* 1: the daemon has closed its copies */
    _Atomic(uint32_t) lives;  /* the kernel clears it when the child has left the memory */
    alignas(16) uint8_t stack[STACK];
};

static struct {
    pthread_mutex_t mutex; /* guards all fields below */
    size_t room, children;
    int waiting[SHUF__CLOSING_MOST];
    struct order order;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .room = SHUF__CLOSING_LEAST};

static atomic_size_t waiting_count; /* written with the mutex */

/* ---- in the child ---- */

/* A sanitizer would use the memory of the thread that calls clone(). */
#if __has_attribute(disable_sanitizer_instrumentation)
#define IN_CHILD __attribute__((disable_sanitizer_instrumentation))
#else
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

IN_CHILD static void close_between(unsigned first, unsigned end, unsigned files)
{
    if (first >= end || syscall(SYS_close_range, first, end - 1, 0) == 0)
        return;
    for (unsigned fd = first; fd < end && fd < files; fd++)
        syscall(SYS_close, fd);
}

IN_CHILD static int close_alone(void *context)
{
    struct order *order = context;
    const struct timespec patience = {.tv_sec = PATIENCE_S};
    unsigned first = 0;
    for (size_t i = 0; i < order->count; i++) {
        close_between(first, (unsigned)order->fds[i], order->files);
        first = (unsigned)order->fds[i] + 1;
    }
    close_between(first, UINT32_MAX, order->files);
    while (!order->closed &&
           syscall(SYS_futex, &order->closed, FUTEX_WAIT_PRIVATE, 0, &patience) == 0)
        ;
    return 0; /* the end of the process closes the sockets */
}

/* ---- in the daemon ---- */

static void await_free_stack(struct order *order)
{
    uint32_t lives;
    while ((lives = order->lives) != 0)
        syscall(SYS_futex, &order->lives, FUTEX_WAIT, lives,
                NULL); /* the kernel's wake is shared */
}

static int compare(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static unsigned end_of_files(void)
{
    const long most = sysconf(_SC_OPEN_MAX);
    return most > 0 && most < INT32_MAX ? (unsigned)most : INT32_MAX;
}

/* No handler of a signal may run in the child, because it has the memory of the daemon. */
static bool clone_child(struct order *order)
{
    sigset_t every, before;
    sigfillset(&every);
    order->files = end_of_files();
    order->closed = 0;
    order->lives = 1;
    pthread_sigmask(SIG_SETMASK, &every, &before);
    const pid_t pid = clone(close_alone, order->stack + STACK, CLONE_VM | CLONE_CHILD_CLEARTID,
                            order, NULL, NULL, (pid_t *)&order->lives);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        order->lives = 0;
    return pid >= 0;
}

/* Call with the mutex. False: the system has no room for a process. */
static bool start_child(void)
{
    struct order *order = &all.order;
    await_free_stack(order);
    order->count = waiting_count;
    memcpy(order->fds, all.waiting, order->count * sizeof *order->fds);
    qsort(order->fds, order->count, sizeof *order->fds, compare);
    if (!clone_child(order))
        return false;
    all.children++;
    for (size_t i = 0; i < order->count; i++)
        close(order->fds[i]); /* the child still has it, so nothing is freed */
    waiting_count = 0;
    order->closed = 1;
    syscall(SYS_futex, &order->closed, FUTEX_WAKE_PRIVATE, 1);
    return true;
}

/* The children send no SIGCHLD, so libraries that wait for processes of their own do not see them.
 */
static void reap_children(void)
{
    while (all.children > 0 && waitpid(-1, NULL, (int)__WCLONE | WNOHANG) > 0)
        all.children--;
}

static void work(bool now)
{
    reap_children();
    if (waiting_count > 0 && (now || all.children < CHILDREN || waiting_count >= all.room))
        start_child();
}

void shuf__closing_set_room(size_t room)
{
    assert(room >= SHUF__CLOSING_LEAST && room <= SHUF__CLOSING_MOST);
    pthread_mutex_lock(&all.mutex);
    all.room = room;
    pthread_mutex_unlock(&all.mutex);
}

/* If the system has no room for processes for so long that no socket can stay open, only a close()
 * that may wait is left. */
void shuf__closing_add(int fd)
{
    bool is_full;
    pthread_mutex_lock(&all.mutex);
    is_full = waiting_count == SHUF__CLOSING_MOST;
    if (!is_full) {
        all.waiting[waiting_count++] = fd;
        work(false);
    }
    pthread_mutex_unlock(&all.mutex);
    if (is_full)
        close(fd);
}

void shuf__closing_continue(void)
{
    if (waiting_count == 0)
        return;
    pthread_mutex_lock(&all.mutex);
    work(false);
    pthread_mutex_unlock(&all.mutex);
}

void shuf__closing_finish(void)
{
    pthread_mutex_lock(&all.mutex);
    work(true);
    pthread_mutex_unlock(&all.mutex);
}
