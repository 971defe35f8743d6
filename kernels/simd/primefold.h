/* SPDX-License-Identifier: MIT
 *
 * `primefold` for the CPU's loops: one row's maps with quotients, which replace every division.
 *
 * Shoup's multiplication: words have w bits, x and m are below p, and the quotient is floor(m * 2^w
 * / p). Then x * m - p * (x * quotient >> w) is in [0, 2 p), and needs only the low w bits. w is
 * the shortest width that holds 2 p.
 */
#ifndef SHUF__SIMD_PRIMEFOLD_H
#define SHUF__SIMD_PRIMEFOLD_H

#include "shuf/primefold.h"

struct shuf__primefold {
    shuf_primefold plain; /* without inverses */
    bool inverse;         /* shuf__primefold_invert() */
    unsigned word_bits;   /* w: 16, 32 or 64; 0 without maps */
    uint64_t quotient[SHUF_PRIMEFOLD_MAPS];
};

/* The width of the words of the maps. */
unsigned shuf__primefold_word_bits(const shuf_primefold_shape *shape);

void shuf__primefold_make(struct shuf__primefold *row, const shuf_primefold_shape *shape,
                          shuf_key key, uint64_t epoch);

/* Inverts the maps and their order, so that the row gives positions of values. */
void shuf__primefold_invert(struct shuf__primefold *row);

#endif
