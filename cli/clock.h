/* SPDX-License-Identifier: MIT
 *
 * The monotonic clock of the programs. A signal handler may read it.
 */
#ifndef SHUF__CLOCK_H
#define SHUF__CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t shuf__clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif
