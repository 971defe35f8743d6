/* SPDX-License-Identifier: MIT
 *
 * The clock of benchmarks that time from outside: monotonic, in nanoseconds.
 */
#ifndef SHUF__BENCH_CLOCK_H
#define SHUF__BENCH_CLOCK_H

#include <time.h>

static inline double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#endif
