/* SPDX-License-Identifier: MIT
 *
 * See shuffles.h. The threads race for places, so the result differs in each run. Only its
 * distribution is defined.
 */
#include "draw.h"
#include "shuffles.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t free_place = UINT32_MAX;

/* The start of part t if n elements are divided into `of` parts. */
static uint64_t part(uint64_t n, int t, int of)
{
    return n * (uint64_t)t / (uint64_t)of;
}

static void throw_darts(_Atomic uint32_t *table, uint64_t places, uint64_t first, uint64_t end,
                        struct draw *draw)
{
    for (uint64_t i = first; i < end; i++)
        for (;;) {
            _Atomic uint32_t *place = &table[draw_below(draw, places)];
            uint32_t found = free_place;
            if (atomic_load_explicit(place, memory_order_relaxed) == free_place &&
                atomic_compare_exchange_strong_explicit(place, &found, (uint32_t)i,
                                                        memory_order_relaxed, memory_order_relaxed))
                break;
        }
}

static uint64_t taken(const uint32_t *table, uint64_t first, uint64_t end)
{
    uint64_t count = 0;
    for (uint64_t i = first; i < end; i++)
        count += table[i] != free_place;
    return count;
}

static void collect(const uint64_t *from, uint64_t *to, const uint32_t *table, uint64_t first,
                    uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        if (table[i] != free_place)
            *to++ = from[table[i]];
}

void peer_dart_throwing(const uint64_t *from, uint64_t *to, uint32_t *table, uint64_t n,
                        uint64_t seed, int threads)
{
    const uint64_t places = 2 * n;
    uint64_t *counts = calloc((size_t)threads, sizeof *counts);
    if (!counts)
        abort();
#pragma omp parallel num_threads(threads)
    {
        const int t = omp_get_thread_num(), of = omp_get_num_threads();
        const uint64_t first = part(places, t, of), end = part(places, t + 1, of);
        struct draw draw = draw_for(seed, (uint64_t)t);
        uint64_t before = 0;
        memset(table + first, 0xff, (end - first) * sizeof *table);
#pragma omp barrier
        throw_darts((_Atomic uint32_t *)table, places, part(n, t, of), part(n, t + 1, of), &draw);
#pragma omp barrier
        counts[t] = taken(table, first, end);
#pragma omp barrier
        for (int other = 0; other < t; other++)
            before += counts[other];
        collect(from, to + before, table, first, end);
    }
    free(counts);
}
