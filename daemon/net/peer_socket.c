/* SPDX-License-Identifier: MIT
 *
 * See peer_socket.h. MSG_PEEK without room for descriptors frees none, and reports with MSG_CTRUNC
 * that there are some (unix(7)).
 *
 * fork() would copy the page tables of the daemon, which takes milliseconds. So a child shares the
 * daemon's memory, but not its descriptors, until it ends. It runs only close_alone(), which calls
 * no function of libc: errno is that of the thread that made the child.
 */
#include "peer_socket.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Sockets that a process of its own closes ---- */

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
    FIRST_CHILDREN = 8, /* close one socket each */
    CHILDREN = 512,
    STACK = 16 << 10,
    PATIENCE_S = 1, /* in which a child leaves the memory */
};

/* The memory that the last child shares with the daemon. */
struct order {
    int fds[SHUF__CLOSING_MOST];
    size_t count;
    unsigned files; /* above all descriptors of the process; 0: the kernel has close_range() */
    pid_t daemon;
    _Atomic(uint32_t) closed; /* 1: the daemon has closed its copies */
    _Atomic(uint32_t) lives;  /* the kernel clears it when the child has left the memory */
    alignas(16) uint8_t stack[STACK];
};

static struct {
    pthread_mutex_t mutex; /* guards all fields below */
    size_t room, allocated;
    int *waiting; /* sockets that stay open */
    struct order order;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .room = SHUF__CLOSING_LEAST};

static atomic_size_t waiting_count, children; /* written with the mutex */

/* ---- In the child ---- */

/* A system call that does not use errno, for code that has no memory of a thread. syscall(2) has
 * the registers. Returns the result of the kernel: -1 to -4095 is an error number with its sign
 * changed. */
__attribute__((always_inline)) static inline long raw_call(long number, long a, long b, long c,
                                                           long d)
{
#if defined __x86_64__
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __aarch64__
    register long call __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth)
                     : "memory");
    return first;
#else
    return syscall(number, a, b, c, d); /* uses errno */
#endif
}

/* A sanitizer would use the memory of the thread that calls clone(). */
#if __has_attribute(disable_sanitizer_instrumentation)
#define IN_CHILD __attribute__((disable_sanitizer_instrumentation))
#else
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

IN_CHILD static void close_between(unsigned first, unsigned end, unsigned files)
{
    if (first >= end)
        return;
    if (files == 0)
        raw_call(SYS_close_range, first, end - 1, 0, 0);
    for (unsigned fd = first; fd < end && fd < files; fd++)
        raw_call(SYS_close, fd, 0, 0, 0);
}

/* The end of the process closes the sockets. If the daemon has ended before it has closed its
 * copies, they have no other. */
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
    while (!order->closed && raw_call(SYS_getppid, 0, 0, 0, 0) == order->daemon)
        raw_call(SYS_futex, (long)&order->closed, FUTEX_WAIT_PRIVATE, 0, (long)&patience);
    return 0;
}

/* ---- Children ---- */

/* Waits until the last child has left the memory. The kernel wakes up shared waiters. */
static void await_child(struct order *order)
{
    const struct timespec patience = {.tv_sec = PATIENCE_S};
    uint32_t lives;
    while ((lives = order->lives) != 0)
        if (syscall(SYS_futex, &order->lives, FUTEX_WAIT, lives, &patience) != 0 &&
            errno == ETIMEDOUT)
            return;
}

static int compare(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* The size of the process's table of descriptors, or 0 if the child needs none. */
static unsigned size_of_table(void)
{
    char line[128];
    unsigned size = 1 << 20;
    if (syscall(SYS_close_range, UINT32_MAX, UINT32_MAX, 0) == 0)
        return 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "FDSize: %u", &size) == 1)
            break;
    if (file)
        fclose(file);
    return size;
}

/* No handler of a signal may run in the child, because it has the memory of the daemon. */
static bool clone_child(struct order *order)
{
    sigset_t every, before;
    sigfillset(&every);
    order->files = size_of_table();
    order->daemon = getpid();
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

/* Gives the sockets that have waited longest to a new child. False: the system has no room for a
 * process, or the last child has not left the memory. */
static bool start_child(void)
{
    struct order *order = &all.order;
    if (order->lives)
        return false;
    order->count = waiting_count < SHUF__CLOSING_MOST ? waiting_count : SHUF__CLOSING_MOST;
    memcpy(order->fds, all.waiting, order->count * sizeof *order->fds);
    qsort(order->fds, order->count, sizeof *order->fds, compare);
    if (!clone_child(order))
        return false;
    children++;
    for (size_t i = 0; i < order->count; i++)
        close(order->fds[i]); /* the child still has it, so nothing is freed */
    waiting_count -= order->count;
    memmove(all.waiting, all.waiting + order->count, waiting_count * sizeof *all.waiting);
    order->closed = 1;
    syscall(SYS_futex, &order->closed, FUTEX_WAKE_PRIVATE, 1);
    return true;
}

/* The children send no SIGCHLD, so libraries that wait for processes of their own do not see them.
 */
static void reap_children(void)
{
    while (children > 0 && waitpid(-1, NULL, (int)__WCLONE | WNOHANG) > 0)
        children--;
}

static void work(void)
{
    reap_children();
    while (waiting_count > 0 && children < CHILDREN &&
           (children < FIRST_CHILDREN || waiting_count >= all.room))
        if (!start_child())
            return;
}

/* Without memory the socket stays open until the process ends. */
static void keep(int fd)
{
    if (waiting_count == all.allocated) {
        const size_t allocated = all.allocated + SHUF__CLOSING_MOST;
        int *waiting = realloc(all.waiting, allocated * sizeof *waiting);
        if (!waiting)
            return;
        all.waiting = waiting;
        all.allocated = allocated;
    }
    all.waiting[waiting_count++] = fd;
}

void shuf__closing_set_room(size_t room)
{
    assert(room >= SHUF__CLOSING_LEAST && room <= SHUF__CLOSING_MOST);
    pthread_mutex_lock(&all.mutex);
    all.room = room;
    pthread_mutex_unlock(&all.mutex);
}

/* Takes the socket and closes it, soon or later. Exceeds the room rather than wait. */
static void close_by_child(int fd)
{
    pthread_mutex_lock(&all.mutex);
    keep(fd);
    work();
    pthread_mutex_unlock(&all.mutex);
}

bool shuf__closing_waits(void)
{
    return waiting_count > 0;
}

bool shuf__closing_continue(void)
{
    if (waiting_count == 0 && children == 0)
        return true;
    pthread_mutex_lock(&all.mutex);
    work();
    const bool has_room = waiting_count < all.room;
    pthread_mutex_unlock(&all.mutex);
    return has_room;
}

void shuf__closing_finish(void)
{
    pthread_mutex_lock(&all.mutex);
    reap_children();
    do
        await_child(&all.order);
    while (waiting_count > 0 && start_child());
    pthread_mutex_unlock(&all.mutex);
}

/* ---- Sockets of clients ---- */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum {
    CHUNK = 16 << 10,
    UNREAD = 1 << 20, /* bytes that close() reads */
};

static atomic_bool may_get_descriptors;

static bool forbid_descriptors(int fd)
{
    const int allowed = 0;
    return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &allowed, sizeof allowed) == 0;
}

void shuf__peer_socket_forbid_descriptors(int fd, bool has_clients)
{
    if (!forbid_descriptors(fd) || has_clients)
        may_get_descriptors = true;
}

/* With SO_OOBINLINE a byte out of band is a byte like the others, also for MSG_PEEK. */
int shuf__peer_socket_accept(int listening)
{
    const int yes = 1;
    if (!shuf__closing_continue()) {
        errno = EUSERS;
        return -1;
    }
    const int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && may_get_descriptors) {
        forbid_descriptors(fd);
        setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes);
    }
    return fd;
}

static ssize_t peek(int fd, void *bytes, size_t size)
{
    struct iovec room = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1};
    const ssize_t seen = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
    if (seen > 0 && message.msg_flags & MSG_CTRUNC) {
        errno = EBADMSG;
        return -1;
    }
    return seen;
}

/* Receives no bytes that came after the look at the first ones. */
static ssize_t receive_seen(int fd, void *bytes, size_t size)
{
    const ssize_t seen = peek(fd, bytes, size);
    return seen > 0 ? recv(fd, bytes, (size_t)seen, MSG_DONTWAIT) : seen;
}

ssize_t shuf__peer_socket_receive(int fd, void *bytes, size_t size)
{
    if (!may_get_descriptors)
        return recv(fd, bytes, size, MSG_DONTWAIT);
    return receive_seen(fd, bytes, size);
}

/* Whether unread bytes have descriptors, or are so many that this is not known. After shutdown() no
 * more bytes come. */
static bool may_have_descriptors(int fd)
{
    uint8_t bytes[CHUNK];
    size_t read = 0;
    shutdown(fd, SHUT_RDWR);
    while (read < UNREAD) {
        const ssize_t got = receive_seen(fd, bytes, sizeof bytes);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return got < 0 && errno == EBADMSG;
        read += got > 0 ? (size_t)got : 0;
    }
    return true;
}

void shuf__peer_socket_close(int fd)
{
    if (may_get_descriptors && may_have_descriptors(fd))
        close_by_child(fd);
    else
        close(fd);
}

/* The connections in the backlog may have descriptors. */
void shuf__peer_socket_close_listening(int fd)
{
    if (!may_get_descriptors) {
        close(fd);
        return;
    }
    close_by_child(fd);
    shuf__closing_finish();
}
