/* SPDX-License-Identifier: MIT
 *
 * The threads of OpenMP. If one of them cannot be started, OpenMP ends the process. So they are
 * started when the backend opens, not in the first job.
 */
#ifndef SHUF__HOST_THREADS_H
#define SHUF__HOST_THREADS_H

#include "error.h"

/* Starts the team of the calling thread, which has this number of threads. Fails with SHUF_IO if
 * the system does not allow so many, and some more for the rest of the daemon. */
shuf_status shuf__threads_start(int threads, struct shuf__error *error);

#endif
