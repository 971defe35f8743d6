/* SPDX-License-Identifier: MIT
 *
 * See team.h. Two faults of OpenMP's run time must not reach a program. It ends the process if it
 * cannot start a thread, so a team that is larger than the last one is tried first. In a child of
 * fork() it waits for ever if the parent had a team, perhaps one of another library, so such a
 * child has no team.
 */
#include "team.h"

#include "host/host.h"
#include "interrupt.h"

#include <pthread.h>
#include <stdbool.h>

enum { MOST = 65536 }; /* threads of one call */

static bool is_child;              /* of fork() since the library was loaded */
static _Thread_local int last = 1; /* OpenMP ends the threads that a smaller team does not need */

static void note_child(void)
{
    is_child = true;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_child);
}

shuf_status shuf__team(unsigned threads, int *team, struct shuf__error *error)
{
    if (threads > MOST)
        return shuf__fail(error, SHUF_INVALID, "threads %u: expected at most %d", threads, MOST);
    *team = is_child ? 1 : shuf__host_threads(threads);
    if (*team > last && shuf__threads_start(*team, 0, error))
        return error->status;
    last = *team;
    return SHUF_OK;
}

/* Asks in the caller's thread only; the other threads learn the answer from it. */
static bool is_caller_interrupted(void *caller)
{
    return pthread_equal(pthread_self(), *(const pthread_t *)caller) && shuf__is_interrupted(0);
}

struct shuf__computation shuf__computation_of_caller(pthread_t *self)
{
    *self = pthread_self();
    return (struct shuf__computation){
        .cancelled = shuf__has_interrupt() ? is_caller_interrupted : NULL, .cancel_context = self};
}
