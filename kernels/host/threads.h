/* SPDX-License-Identifier: MIT
 *
 * The threads of OpenMP. OpenMP ends the process if it cannot start one of them. So they are
 * started before the first computation. It ends the threads that a smaller team does not need, and
 * starts them again for a larger one.
 */
#ifndef SHUF__HOST_THREADS_H
#define SHUF__HOST_THREADS_H

#include "error.h"

/* Starts the team of the calling thread, which has this number of threads. Fails with SHUF_IO if
 * the system does not allow so many, and `later` more, which the process starts later. */
shuf_status shuf__threads_start(int threads, int later, struct shuf__error *error);

#endif
