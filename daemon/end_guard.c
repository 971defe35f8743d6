/* SPDX-License-Identifier: MIT
 *
 * See end_guard.h.
 */
#include "end_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static struct {
    uint64_t ms;
    void (*leave)(void *context);
    void *context;
} guard;

static void *wait_and_leave(void *unused)
{
    struct timespec left = {.tv_sec = (time_t)(guard.ms / 1000),
                            .tv_nsec = (long)(guard.ms % 1000) * 1000000};
    (void)unused;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) /* a signal of the process */
        continue;
    guard.leave(guard.context);
    return NULL;
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
