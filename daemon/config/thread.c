/* SPDX-License-Identifier: MIT
 *
 * See thread.h.
 */
#include "thread.h"

#include <signal.h>

int shuf__thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}
