/* SPDX-License-Identifier: MIT
 *
 * See threads.h.
 */
#include "host/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The thread lives until the gate opens, so that all threads exist at the same time. */
static void *pass(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Starts and ends threads. Returns 0, or an error number. */
static int start_and_end(size_t count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = malloc(count * sizeof *threads);
    size_t started = 0;
    int result = threads ? 0 : ENOMEM;
    pthread_mutex_lock(&gate);
    while (result == 0 && started < count) {
        result = pthread_create(&threads[started], NULL, pass, &gate);
        started += result == 0;
    }
    pthread_mutex_unlock(&gate);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
    return result;
}

shuf_status shuf__threads_start(int threads, int later, struct shuf__error *error)
{
    const int more = threads - 1 + later, result = start_and_end((size_t)more);
    if (result)
        return shuf__fail(error, SHUF_IO,
                          "threads %d: %d more threads cannot be started: %s; raise the limits of "
                          "processes (ulimit -u, pids.max, TasksMax= of the unit) and of memory "
                          "(ulimit -v), or lower threads",
                          threads, more, strerror(result));
#pragma omp parallel num_threads(threads)
    {
        __asm__ volatile(""); /* GCC omits an empty region, and then starts no threads */
    }
    return SHUF_OK;
}
