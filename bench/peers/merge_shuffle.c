/* SPDX-License-Identifier: MIT
 *
 * See shuffles.h. The merges of a level run in parallel. The last merge runs on one thread.
 */
#include "fisher_yates.h"
#include "shuffles.h"

#include <stdbool.h>
#include <stddef.h>

/* Merges two shuffled runs, v[0 .. middle) and v[middle .. n). A coin selects the run of the next
 * value. When the selected run is empty, the remaining values of the other run are inserted at
 * random places. */
static void merge(value *v, uint64_t middle, uint64_t n, struct draw *draw)
{
    uint64_t i = 0, j = middle;
    while (j - i > 64 && n - j > 64) { /* 64 tosses cannot empty a run */
        uint64_t coins = draw_word(draw);
        /* in a register, so a toss does not wait for the store of the toss before */
        value second = v[j];
        for (int toss = 0; toss < 64; toss++, i++, coins >>= 1) {
            const value first = v[i], next = v[j + 1];
            const value mask = 0 - (value)(coins & 1), change = (first ^ second) & mask;
            v[i] = first ^ change; /* no branch: it would be mispredicted */
            v[j] = second ^ change;
            second ^= (second ^ next) & mask;
            j += coins & 1;
        }
    }
    for (;; i++) {
        const bool second = draw_word(draw) & 1;
        if (second ? j == n : i == j)
            break;
        if (second)
            exchange(v, i, j++);
    }
    for (; i < n; i++)
        exchange(v, i, draw_below(draw, i + 1));
}

static void shuffle(const value *given, value *values, uint64_t n, uint64_t seed, int threads)
{
    uint64_t runs = 1;
    while (n / runs > IN_CACHE)
        runs *= 2;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (uint64_t run = 0; run < runs; run++) {
        const uint64_t begin = n * run / runs, end = n * (run + 1) / runs;
        struct draw draw = draw_for(seed, run);
        for (uint64_t i = begin; i < end; i++)
            values[i] = given ? given[i] : (value)i;
        fisher_yates(values + begin, end - begin, &draw);
    }
    for (uint64_t width = 1; width < runs; width *= 2)
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (uint64_t run = 0; run < runs; run += 2 * width) {
            const uint64_t begin = n * run / runs, middle = n * (run + width) / runs,
                           end = n * (run + 2 * width) / runs;
            struct draw draw = draw_for(seed + width, run);
            merge(values + begin, middle - begin, end - begin, &draw);
        }
}

#ifdef PEER_ITEMS

void peer_merge_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed,
                              int threads)
{
    shuffle(from, to, n, seed, threads);
}

#else

void peer_merge_shuffle(uint32_t *values, uint64_t n, uint64_t seed, int threads)
{
    shuffle(NULL, values, n, seed, threads);
}

#endif
