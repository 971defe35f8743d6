/* SPDX-License-Identifier: MIT
 *
 * A thread that gets no signals, because the loop's thread handles them.
 */
#ifndef SHUFD_THREAD_H
#define SHUFD_THREAD_H

#include <pthread.h>

/* Starts the thread. Returns 0, or an error number of errno(3). */
int shuf__thread_start(pthread_t *thread, void *(*run)(void *), void *context);

#endif
