/* SPDX-License-Identifier: MIT
 *
 * The maps and folds of `primefold` in double precision, for p < 2^50. Products of such integers
 * have up to 100 bits, and vectors have no such products. Doubles compute m x mod p exactly (van
 * der Hoeven, Lecerf, Quintin: "Modular SIMD arithmetic in Mathemagix", ACM TOMS 43(1), 2016):
 *
 * 1. The product is m x = h + l. h is the product rounded to a double. A fused multiply-add gives
 *    l, the rounding error.
 * 2. q is the integer nearest to an estimate of m x / p, which is below 2^50. The error of the
 *    estimate is below 3/16: 1/8 from the rounding of m / p, and 1/16 from its own rounding. So |m
 *    x - q p| is at most 11/16 p. All terms of this difference have at most 53 bits, so doubles
 *    hold them exactly.
 * 3. If the difference is negative, p is added.
 *
 * A fold works on bits: the double 2^52 + x has the integer x in its low bits.
 */
#ifndef SHUF__SIMD_PRIMEFOLD_DOUBLE_H
#define SHUF__SIMD_PRIMEFOLD_DOUBLE_H

#include "primefold_vector.h"
#include "simd/primefold.h"

enum { LANES_50 = sizeof(vector_50) / 8, MAPS_50 = SHUF_PRIMEFOLD_MAPS_LARGE_62 };

struct keys_50 {
    vector_50 p, whole;                            /* a fold changes only values below `whole` */
    vector_50 multiplier[MAPS_50], slope[MAPS_50]; /* multiplier / p */
    vector_50 addend;
    bits_50 fold[MAPS_50]; /* the key of a fold, xor the exponent of 2^52 + x, which it cancels:
                              shifted as in the fold, or unshifted for the inverse */
};

static const uint64_t exponent_52 = UINT64_C(0x433) << 52; /* the bits of the double 2^52 */

static inline struct keys_50 make_keys_50(const struct shuf__primefold *row)
{
    const shuf_primefold_shape *s = &row->plain.shape;
    struct keys_50 k;
    k.p = all_50((double)s->p);
    k.whole = all_50((double)s->whole);
    k.addend = all_50((double)row->plain.addend);
    for (int r = 0; r < MAPS_50; r++) {
        const shuf_primefold_map *map = &row->plain.map[r];
        k.multiplier[r] = all_50((double)map->multiplier);
        k.slope[r] = all_50((double)map->multiplier / (double)s->p);
        k.fold[r] = all_bits_50(map->fold ^ exponent_52 >> (row->inverse ? 0 : s->shift));
    }
    return k;
}

/* x + y mod p */
static inline vector_50 sum_50(const struct keys_50 *k, vector_50 x, vector_50 y)
{
    return add_if_negative_50(subtract_50(add_50(x, y), k->p), k->p);
}

static inline vector_50 mapped_50(const struct keys_50 *k, unsigned r, vector_50 x)
{
    vector_50 q = rounded_50(product_50(x, k->slope[r]));
    vector_50 h = product_50(x, k->multiplier[r]);
    vector_50 l = fused_less_50(x, k->multiplier[r], h);
    vector_50 rest = add_50(less_fused_50(q, k->p, h), l);
    return add_if_negative_50(rest, k->p);
}

static inline __attribute__((always_inline)) vector_50
folded_large_50(const struct keys_50 *k, int shift, unsigned r, vector_50 x)
{
    const vector_50 above = all_50(0x1p52);
    bits_50 bits = to_bits_50(add_50(x, above));
    bits_50 folded = xor_where_below_50(bits, right_50(bits, shift), k->fold[r], x, k->whole);
    return subtract_50(of_bits_50(folded), above);
}

static inline __attribute__((always_inline)) vector_50
unfolded_large_50(const struct keys_50 *k, int shift, unsigned r, vector_50 x)
{
    const vector_50 above = all_50(0x1p52);
    bits_50 bits = to_bits_50(add_50(x, above));
    bits_50 y = xor_50(bits, k->fold[r]);
#pragma GCC unroll 6
    for (int by = shift; by < 50; by *= 2)
        y = xor_50(y, right_50(y, by));
    bits_50 change = xor_50(bits, all_bits_50(exponent_52));
    return subtract_50(of_bits_50(xor_where_below_50(bits, change, y, x, k->whole)), above);
}

static inline vector_50 load_50(const uint64_t *words)
{
    bits_50 bits;
    memcpy(&bits, words, sizeof bits);
    return subtract_50(of_bits_50(xor_50(bits, all_bits_50(exponent_52))), all_50(0x1p52));
}

static inline void store_50(uint64_t *out, vector_50 x)
{
    bits_50 bits = xor_50(to_bits_50(add_50(x, all_50(0x1p52))), all_bits_50(exponent_52));
    memcpy(out, &bits, sizeof bits);
}

#endif
