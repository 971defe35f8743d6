/* SPDX-License-Identifier: MIT
 *
 * A thread that gets no signals, because the loop's thread handles them.
 */
#ifndef SHUFD_THREAD_H
#define SHUFD_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts the thread. Returns 0, or an error number of errno(3). */
static inline int shuf__thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

#endif
