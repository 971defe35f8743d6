/* SPDX-License-Identifier: MIT
 *
 * `primefold` for the CPU's loops: the maps of one row, for Shoup's multiplication, which computes
 * x * m mod p without a division (Harvey: "Faster arithmetic for number-theoretic transforms",
 * 2014).
 *
 *     w           bits of a word: the shortest of 16, 32 and 64 with 2 p <= 2^w
 *     quotient    floor(m * 2^w / p), computed once for each multiplier m
 *     q           x * quotient >> w, for x < p. This is floor(x * m / p), or one less.
 *
 * So x * m - p * q is from 0 to 2 p - 1, and the low w bits of both products are enough to compute
 * it.
 */
#ifndef SHUF__SIMD_PRIMEFOLD_H
#define SHUF__SIMD_PRIMEFOLD_H

#include "shuf/primefold.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns shuf_primefold_shape_of(n). Each thread caches the shape of its last n. Without this, the
 * search for the prime would take much of the time of a small computation. */
shuf_primefold_shape shuf__primefold_shape(uint64_t n);

struct shuf__primefold {
    shuf_primefold plain; /* its field `inverse` is not set */
    bool inverse;         /* set by shuf__primefold_invert() */
    unsigned word_bits;   /* w: 16, 32 or 64; 0 if primefold has exchanges instead of maps */
    uint64_t quotient[SHUF_PRIMEFOLD_MAPS];
};

/* The number of bits of the words that compute the maps. */
unsigned shuf__primefold_word_bits(const shuf_primefold_shape *shape);

void shuf__primefold_make(struct shuf__primefold *row, const shuf_primefold_shape *shape,
                          shuf_key key, uint64_t epoch);

/* Replaces the maps of f by their inverses, in reverse order. The inverse of a map is a map too, so
 * one code computes values of positions and positions of values. The `fold` of a map is the key of
 * the inverse fold after it. The inverse adds `addend` after its last map, not after its first. f
 * must have maps: n > SHUF_PRIMEFOLD_EXACT. */
void shuf__invert_maps(shuf_primefold *f);

/* Does the same for a row, which then gives positions of values. */
void shuf__primefold_invert(struct shuf__primefold *row);

#ifdef __cplusplus
}
#endif

#endif
