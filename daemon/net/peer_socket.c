/* SPDX-License-Identifier: MIT
 *
 * See peer_socket.h.
 */
#include "peer_socket.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum { PATIENCE_US = 200, SIGNAL = SIGURG };

static atomic_bool may_get_descriptors;

/* The timer of this thread, which sends the signal to it. */
static _Thread_local struct {
    bool exists;
    timer_t timer;
} own;

static void do_nothing(int signal)
{
    (void)signal;
}

/* Without SA_RESTART the signal ends a wait in the kernel. */
static void expect_descriptors(void)
{
    const struct sigaction action = {.sa_handler = do_nothing};
    sigaction(SIGNAL, &action, NULL);
    may_get_descriptors = true;
}

static bool forbid_descriptors(int fd)
{
    const int allowed = 0;
    return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &allowed, sizeof allowed) == 0;
}

void shuf__peer_socket_forbid_descriptors(int fd, bool has_clients)
{
    if (!forbid_descriptors(fd) || has_clients)
        expect_descriptors();
}

int shuf__peer_socket_accept(int listening)
{
    const int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && may_get_descriptors)
        forbid_descriptors(fd);
    return fd;
}

static void make_timer(void)
{
    sigset_t signals;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    event._sigev_un._tid = gettid();
    own.exists = timer_create(CLOCK_MONOTONIC, &event, &own.timer) == 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

/* The signal comes after this time and repeats, because one signal may come before the wait begins.
 * 0: it does not come. */
static void set_timer(long us)
{
    const struct timespec delay = {.tv_nsec = us * 1000};
    const struct itimerspec time = {.it_value = delay, .it_interval = delay};
    if (!may_get_descriptors)
        return;
    if (!own.exists)
        make_timer();
    if (own.exists)
        timer_settime(own.timer, 0, &time, NULL);
}

ssize_t shuf__peer_socket_receive(int fd, void *bytes, size_t size)
{
    set_timer(PATIENCE_US);
    const ssize_t got = recv(fd, bytes, size, MSG_DONTWAIT);
    const int cause = errno;
    set_timer(0);
    errno = cause;
    return got;
}

void shuf__peer_socket_close(int fd)
{
    set_timer(PATIENCE_US);
    close(fd);
    set_timer(0);
}
