/* SPDX-License-Identifier: MIT
 *
 * The peers of the CPU benchmarks. Each function writes a random permutation of [0, n), n < 2^32,
 * to `values`. Functions that end in _items shuffle given items.
 */
#ifndef SHUF__BENCH_SHUFFLES_H
#define SHUF__BENCH_SHUFFLES_H

#include <stdint.h>

/* ---- Random numbers ---- */

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). A
 * number takes about a nanosecond. */
struct draw {
    uint64_t state;
};

static inline uint64_t draw_word(struct draw *draw)
{
    uint64_t z = draw->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A separate stream for each (seed, part). */
static inline struct draw draw_for(uint64_t seed, uint64_t part)
{
    struct draw draw = {seed ^ part << 32};
    draw.state = draw_word(&draw);
    return draw;
}

/* 0 .. n - 1. The bias is negligible, because n is far below 2^64. */
static inline uint64_t draw_below(struct draw *draw, uint64_t n)
{
    return (uint64_t)((unsigned __int128)draw_word(draw) * n >> 64);
}

/* ---- The peers ---- */

#ifdef __cplusplus
extern "C" {
#endif

/* The Fisher-Yates shuffle of the C++ library, with std::mt19937_64. */
void peer_std_shuffle(uint32_t *values, uint64_t n);

/* Distributes the values into 256 parts by random bytes, recursively, until a part fits the cache.
 * There it applies Fisher-Yates. `spare` has room for n values. Rao: "Generation of random
 * permutations of given number of elements using random sampling numbers", Sankhya A 23, 1961;
 * Sandelius: "A simple randomization procedure", J. Royal Stat. Soc. B 24, 1962. */
void peer_rao_sandelius(uint32_t *values, uint32_t *spare, uint64_t n, uint64_t seed, int threads);

/* Shuffles parts that fit the cache by Fisher-Yates, then merges neighbours by coin tosses. Bacher,
 * Bodini, Hollender, Lumbroso: "MergeShuffle: a very fast, parallel random permutation algorithm",
 * arXiv 1508.03167, 2015. */
void peer_merge_shuffle(uint32_t *values, uint64_t n, uint64_t seed, int threads);

/* These write a shuffle of the u64 items `from` to `to`, by the same algorithms. */
void peer_std_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n);
void peer_rao_sandelius_items(const uint64_t *from, uint64_t *to, uint64_t *spare, uint64_t n,
                              uint64_t seed, int threads);
void peer_merge_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed,
                              int threads);

/* For items only, n < 2^32. Writes the index of each item to a random free place of a table with 2n
 * places. The order of the indices in the table is the shuffle. It differs in each run. Reif: "An
 * optimal parallel algorithm for integer sorting", FOCS 1985. */
void peer_dart_throwing(const uint64_t *from, uint64_t *to, uint32_t *table, uint64_t n,
                        uint64_t seed, int threads);

/* Sorts the items by 64 random bits. It uses all threads if the C++ library has a parallel sort. */
void peer_sort_shuffle(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed, int threads);

#ifdef __cplusplus
}
#endif

#endif
