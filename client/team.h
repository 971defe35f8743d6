/* SPDX-License-Identifier: MIT
 *
 * What a computation in this process needs: its threads, and the question whether a signal ends it.
 */
#ifndef SHUF__TEAM_H
#define SHUF__TEAM_H

#include "backend.h"
#include "error.h"

#include <pthread.h>

/* Sets *team to the number of threads to use for a request of `threads`; 0 means all processors of
 * the process. Fails with SHUF_IO if the system does not allow so many. */
shuf_status shuf__team(unsigned threads, int *team, struct shuf__error *error);

/* A computation without a request, which asks the interrupt function. Sets *self to the calling
 * thread, which the computation needs until its end. */
struct shuf__computation shuf__computation_of_caller(pthread_t *self);

#endif
