/* SPDX-License-Identifier: MIT
 *
 * The shuffle of values that fit the cache, for both peers in C.
 */
#ifndef SHUF__BENCH_FISHER_YATES_H
#define SHUF__BENCH_FISHER_YATES_H

#include "draw.h"
#include "value.h"

enum { IN_CACHE = (256 << 10) / sizeof(value) }; /* values that fit the L2 cache */

static inline void exchange(value *values, uint64_t i, uint64_t j)
{
    value here = values[i];
    values[i] = values[j];
    values[j] = here;
}

static inline void fisher_yates(value *values, uint64_t n, struct draw *draw)
{
    for (uint64_t i = n; i > 1; i--)
        exchange(values, i - 1, draw_below(draw, i));
}

#endif
