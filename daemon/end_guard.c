/* SPDX-License-Identifier: MIT
 *
 * See end_guard.h.
 */
#include "end_guard.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex; /* of `leave` and `context` */
    uint64_t ms;
    int exit_code;
    void (*leave)(void *context);
    void *context;
} guard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The log may have ended. A reader of standard error that has stopped must not hold the process. */
static void write_cause(void)
{
    static const char cause[] =
        "shufd: a library does not end with the process; leaving without it\n";
    if (poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) == 1)
        (void)!write(STDERR_FILENO, cause, sizeof cause - 1);
}

static void *wait_and_leave(void *unused)
{
    struct timespec left = {.tv_sec = (time_t)(guard.ms / 1000),
                            .tv_nsec = (long)(guard.ms % 1000) * 1000000};
    (void)unused;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) /* a signal of the process */
        continue;
    pthread_mutex_lock(&guard.mutex); /* stays locked, so leave() has its context until the end */
    if (guard.leave)
        guard.leave(guard.context);
    else
        write_cause();
    _exit(guard.exit_code);
}

void shuf__end_guard_start(uint64_t ms, int exit_code, void (*leave)(void *context), void *context)
{
    pthread_t thread;
    guard.ms = ms;
    guard.exit_code = exit_code;
    guard.leave = leave;
    guard.context = context;
    if (pthread_create(&thread, NULL, wait_and_leave, NULL) == 0)
        pthread_detach(thread);
}

void shuf__end_guard_forget(void)
{
    pthread_mutex_lock(&guard.mutex);
    guard.leave = NULL;
    pthread_mutex_unlock(&guard.mutex);
}
