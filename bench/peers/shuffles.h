/* SPDX-License-Identifier: MIT
 *
 * What the CPU is measured against, in process: each writes a random permutation of
 * [0, n) to `values`, n < 2^32, or shuffles what it is given.
 */
#ifndef SHUF__BENCH_SHUFFLES_H
#define SHUF__BENCH_SHUFFLES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fisher and Yates by C++'s library, with std::mt19937_64. */
void peer_std_shuffle(uint32_t *values, uint64_t n);

/* Into 256 parts by random bytes, again and again until a part fits the cache, and there Fisher
 * and Yates. Rao: "Generation of random permutations of given number of elements using random
 * sampling numbers", Sankhya A 23, 1961; Sandelius: "A simple randomization procedure", J. Royal
 * Stat. Soc. B 24, 1962. `spare` has room for as many. */
void peer_rao_sandelius(uint32_t *values, uint32_t *spare, uint64_t n, uint64_t seed, int threads);

/* Parts that fit the cache by Fisher and Yates, then neighbours merged by coin tosses. Bacher,
 * Bodini, Hollender, Lumbroso: "MergeShuffle: a very fast, parallel random permutation
 * algorithm", arXiv 1508.03167, 2015. */
void peer_merge_shuffle(uint32_t *values, uint64_t n, uint64_t seed, int threads);

/* The same with u64 items, of which `to` becomes a shuffle. */
void peer_std_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n);
void peer_rao_sandelius_items(const uint64_t *from, uint64_t *to, uint64_t *spare, uint64_t n,
                              uint64_t seed, int threads);
void peer_merge_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed,
                              int threads);

/* Only of items, n < 2^32: their indices are thrown at a table of 2n places until each finds a free
 * one; what stands there then, in the table's order, is the shuffle. It is another one each time.
 * Reif: "An optimal parallel algorithm for integer sorting", FOCS 1985. */
void peer_dart_throwing(const uint64_t *from, uint64_t *to, uint32_t *table, uint64_t n,
                        uint64_t seed, int threads);

/* Items sorted by 64 random bits, by all threads where the C++ library can; else by one. */
void peer_sort_shuffle(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed, int threads);

#ifdef __cplusplus
}
#endif

#endif
