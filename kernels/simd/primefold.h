/* SPDX-License-Identifier: MIT
 *
 * `primefold` as the CPU's loops want it: one row's maps with the quotients that
 * spare them every division.
 *
 * Shoup's multiplication: with words of w bits, x and m below p, and the quotient
 * floor(m * 2^w / p), the product x * m - p * (x * quotient >> w) lies in [0, 2 p),
 * and needs no bits above the word's. w is the shortest that holds 2 p.
 */
#ifndef SHUF__SIMD_PRIMEFOLD_H
#define SHUF__SIMD_PRIMEFOLD_H

#include "shuf/primefold.h"

struct shuf__primefold {
    shuf_primefold plain; /* without inverses */
    bool inverse;         /* shuf__primefold_invert() */
    unsigned word_bits;   /* w: 16, 32 or 64; 0 where there are no maps */
    uint64_t quotient[SHUF_PRIMEFOLD_MAPS];
};

/* Which word the maps are computed in. */
unsigned shuf__primefold_word_bits(const shuf_primefold_shape *shape);

void shuf__primefold_make(struct shuf__primefold *row, const shuf_primefold_shape *shape,
                          uint64_t seed, uint64_t epoch);

/* The row then gives positions of values: its maps are inverted, in reverse order. */
void shuf__primefold_invert(struct shuf__primefold *row);

#endif
