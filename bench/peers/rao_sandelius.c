/* SPDX-License-Identifier: MIT
 *
 * See shuffles.h. Each level draws its random bytes twice, once to count them and once to move the
 * values. So it does not store them.
 */
#include "fisher_yates.h"
#include "shuffles.h"

#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 256, DRAWS = 8 }; /* DRAWS: random bytes of a word */

/* Sets place[b] to the number of the n random bytes that equal b. */
static void count(uint64_t n, struct draw draw, uint64_t place[PARTS])
{
    memset(place, 0, PARTS * sizeof *place);
    for (uint64_t i = 0; i < n; i += DRAWS) {
        uint64_t word = draw_word(&draw);
        for (uint64_t k = 0; k < DRAWS; k++, word >>= 8)
            place[word & 0xff] += i + k < n;
    }
}

/* Moves up to DRAWS values to the parts that the bytes of `word` select. The values are from[k], or
 * first + k if `from` is NULL. */
static inline void scatter_some(const value *from, uint64_t first, uint64_t some, uint64_t word,
                                uint64_t place[PARTS], value *to)
{
    for (uint64_t k = 0; k < some; k++, word >>= 8)
        to[place[word & 0xff]++] = from ? from[k] : (value)(first + k);
}

static void scatter(const value *from, uint64_t first, uint64_t n, struct draw draw,
                    uint64_t place[PARTS], value *to)
{
    uint64_t i = 0;
    for (; n - i >= DRAWS; i += DRAWS)
        scatter_some(from ? from + i : NULL, first + i, DRAWS, draw_word(&draw), place, to);
    scatter_some(from ? from + i : NULL, first + i, n - i, draw_word(&draw), place, to);
}

/* Replaces the size of each part by its start. */
static void sum_up(uint64_t place[PARTS])
{
    for (uint64_t b = 0, begin = 0; b < PARTS; b++) {
        uint64_t of_part = place[b];
        place[b] = begin;
        begin += of_part;
    }
}

/* Shuffles the n values of `here`. The result is in `here` if `result`, else in `there`. */
static void shuffle(value *here, value *there, uint64_t n, bool result, struct draw *draw)
{
    uint64_t place[PARTS];
    if (n <= IN_CACHE) {
        if (!result)
            memcpy(there, here, n * sizeof *there);
        fisher_yates(result ? here : there, n, draw);
        return;
    }
    const struct draw bytes = draw_for(draw_word(draw), 0);
    count(n, bytes, place);
    sum_up(place);
    scatter(here, 0, n, bytes, place, there);
    /* scatter() has advanced place[b] to the end of part b */
    for (uint64_t b = 0, begin = 0; b < PARTS; b++) {
        shuffle(there + begin, here + begin, place[b] - begin, !result, draw);
        begin = place[b];
    }
}

/* Does the same for the sizes of all threads: the values of thread 0 come first in each part. */
static void sum_up_all(uint64_t (*place)[PARTS], uint64_t threads, uint64_t begin[PARTS])
{
    for (uint64_t b = 0, sum = 0; b < PARTS; b++) {
        begin[b] = sum;
        for (uint64_t t = 0; t < threads; t++) {
            uint64_t of_part = place[t][b];
            place[t][b] = sum;
            sum += of_part;
        }
    }
}

/* Runs the first level on all threads, each with its share of the values. Sets begin[b] to the
 * start of part b. */
static void split(const value *given, value *to, uint64_t n, uint64_t seed, int threads,
                  uint64_t begin[PARTS])
{
    uint64_t(*place)[PARTS] = calloc((size_t)threads, sizeof *place);
    if (!place)
        abort();
#pragma omp parallel num_threads(threads)
    {
        const uint64_t t = (uint64_t)omp_get_thread_num(), of = (uint64_t)omp_get_num_threads();
        const uint64_t first = n / of * t, here = t + 1 < of ? n / of : n - first;
        const struct draw bytes = draw_for(seed, t);
        count(here, bytes, place[t]);
#pragma omp barrier
#pragma omp single
        sum_up_all(place, of, begin);
        scatter(given ? given + first : NULL, first, here, bytes, place[t], to);
    }
    free(place);
}

static void shuffle_all(const value *given, value *values, value *spare, uint64_t n, uint64_t seed,
                        int threads)
{
    uint64_t begin[PARTS + 1];
    split(given, spare, n, seed, threads, begin);
    begin[PARTS] = n;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (uint64_t b = 0; b < PARTS; b++) {
        struct draw draw = draw_for(~seed, b);
        shuffle(spare + begin[b], values + begin[b], begin[b + 1] - begin[b], false, &draw);
    }
}

#ifdef PEER_ITEMS

void peer_rao_sandelius_items(const uint64_t *from, uint64_t *to, uint64_t *spare, uint64_t n,
                              uint64_t seed, int threads)
{
    shuffle_all(from, to, spare, n, seed, threads);
}

#else

void peer_rao_sandelius(uint32_t *values, uint32_t *spare, uint64_t n, uint64_t seed, int threads)
{
    shuffle_all(NULL, values, spare, n, seed, threads);
}

#endif
