/* SPDX-License-Identifier: MIT
 *
 * See end_guard.h.
 */
#include "end_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex; /* of `leave` and `context` */
    uint64_t ms;
    void (*leave)(void *context);
    void *context;
} guard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *wait_and_leave(void *unused)
{
    struct timespec left = {.tv_sec = (time_t)(guard.ms / 1000),
                            .tv_nsec = (long)(guard.ms % 1000) * 1000000};
    (void)unused;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) /* a signal of the process */
        continue;
    pthread_mutex_lock(&guard.mutex); /* until the process has ended */
    if (guard.leave)
        guard.leave(guard.context);
    _exit(EX_SOFTWARE);
}

void shuf__end_guard_start(uint64_t ms, void (*leave)(void *context), void *context)
{
    pthread_t thread;
    guard.ms = ms;
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
