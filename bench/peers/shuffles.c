/* SPDX-License-Identifier: MIT
 *
 * See shuffles.h. The file is compiled twice, for the best code in both cases: for u32 values that
 * the peers generate, 0, 1, 2, ..., and with PEER_ITEMS for given u64 items.
 */
#include "shuffles.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEER_ITEMS
typedef uint64_t value;
#else
typedef uint32_t value;
#endif

/* ---- Fisher-Yates ---- */

/* Shuffles values that fit the cache. */

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

/* ---- Rao-Sandelius ---- */

/* Each level draws its random bytes twice, once to count them and once to move the values. So it
 * does not store them. */

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
static void shuffle_part(value *here, value *there, uint64_t n, bool result, struct draw *draw)
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
        shuffle_part(there + begin, here + begin, place[b] - begin, !result, draw);
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

static void rao_sandelius(const value *given, value *values, value *spare, uint64_t n,
                          uint64_t seed, int threads)
{
    uint64_t begin[PARTS + 1];
    split(given, spare, n, seed, threads, begin);
    begin[PARTS] = n;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (uint64_t b = 0; b < PARTS; b++) {
        struct draw draw = draw_for(~seed, b);
        shuffle_part(spare + begin[b], values + begin[b], begin[b + 1] - begin[b], false, &draw);
    }
}

/* ---- MergeShuffle ---- */

/* The merges of a level run in parallel. The last merge runs on one thread. */

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

static void merge_shuffle(const value *given, value *values, uint64_t n, uint64_t seed, int threads)
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

#ifndef PEER_ITEMS

void peer_rao_sandelius(uint32_t *values, uint32_t *spare, uint64_t n, uint64_t seed, int threads)
{
    rao_sandelius(NULL, values, spare, n, seed, threads);
}

void peer_merge_shuffle(uint32_t *values, uint64_t n, uint64_t seed, int threads)
{
    merge_shuffle(NULL, values, n, seed, threads);
}

#else

void peer_rao_sandelius_items(const uint64_t *from, uint64_t *to, uint64_t *spare, uint64_t n,
                              uint64_t seed, int threads)
{
    rao_sandelius(from, to, spare, n, seed, threads);
}

void peer_merge_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed,
                              int threads)
{
    merge_shuffle(from, to, n, seed, threads);
}

/* ---- Darts ---- */

/* The threads race for places, so the result differs in each run. Only its distribution is defined.
 */

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

#endif
