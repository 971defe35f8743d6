/* SPDX-License-Identifier: MIT
 *
 * The step that both peers in C take where values fit the cache.
 */
#ifndef SHUF__BENCH_FISHER_YATES_H
#define SHUF__BENCH_FISHER_YATES_H

#include "draw.h"

enum { IN_CACHE = 1 << 16 }; /* values: 256 KiB, which an L2 holds */

static inline void exchange(uint32_t *values, uint64_t i, uint64_t j)
{
    uint32_t value = values[i];
    values[i] = values[j];
    values[j] = value;
}

static inline void fisher_yates(uint32_t *values, uint64_t n, struct draw *draw)
{
    for (uint64_t i = n; i > 1; i--)
        exchange(values, i - 1, draw_below(draw, i));
}

#endif
