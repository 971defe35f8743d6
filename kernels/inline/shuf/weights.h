/* SPDX-License-Identifier: MIT
 *
 * Weighted draws: the integers of a weight, and a look-up in the table. docs/spec.md, "Weighted
 * draws".
 *
 * The probabilities are multiples of 2^-63. The table is that of the alias method with a power of
 * two of columns. A column is one word: its threshold, and in its lower bits its alias.
 */
#ifndef SHUF_WEIGHTS_TABLE_H
#define SHUF_WEIGHTS_TABLE_H

#include "inline.h"

#include <math.h>
#include <stdint.h>

/* The number of weights, at most, and the bits of a draw. */
#define SHUF_WEIGHTS_MOST (UINT64_C(1) << 32)
enum { SHUF_WEIGHTS_BITS = 63 };

/* number * 2^exponent. */
typedef struct shuf_weight {
    uint64_t number;
    int exponent;
} shuf_weight;

/* Whether these are the bits of a number that is finite, and not negative or -0. */
SHUF_FUNCTION int shuf_weight_is_f64(uint64_t bits)
{
    return bits == UINT64_C(1) << 63 || bits < UINT64_C(0x7ff) << 52;
}

SHUF_FUNCTION int shuf_weight_is_f32(uint32_t bits)
{
    return bits == UINT32_C(1) << 31 || bits < UINT32_C(0xff) << 23;
}

/* The weight with such bits. Arithmetic would take a subnormal number for 0 in a thread that
 * flushes them. */
SHUF_FUNCTION shuf_weight shuf_weight_of_f64(uint64_t bits)
{
    const int field = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & (UINT64_MAX >> 12), leading = UINT64_C(1) << 52;
    const shuf_weight weight = {field ? fraction | leading : fraction, (field ? field : 1) - 1075};
    return weight;
}

SHUF_FUNCTION shuf_weight shuf_weight_of_f32(uint32_t bits)
{
    const int field = (int)(bits >> 23 & 0xff);
    const uint32_t fraction = bits & (UINT32_MAX >> 9), leading = UINT32_C(1) << 23;
    const shuf_weight weight = {field ? fraction | leading : fraction, (field ? field : 1) - 150};
    return weight;
}

/* The weight as a part of 2^top, for the keys of samples: weight.number is not 0. */
SHUF_FUNCTION double shuf_weight_scaled(shuf_weight weight, int top)
{
    const double scaled = ldexp((double)weight.number, weight.exponent - top);
    const double least = ldexp(1.0, -1000);
    return scaled > least ? scaled : least;
}

#ifdef __SIZEOF_INT128__
enum { SHUF__WEIGHT_BITS = 95 }; /* 2^32 weights have a sum of at most 127 bits */

/* The weight in units of 2^(top - 95), rounded down. The weight is below 2^top. */
SHUF_FUNCTION shuf__u128 shuf_weight_fixed(shuf_weight weight, int top)
{
    const int shift = weight.exponent + SHUF__WEIGHT_BITS - top;
    if (weight.number == 0 || shift <= -64)
        return 0;
    return shift >= 0 ? (shuf__u128)weight.number << shift : weight.number >> -shift;
}

/* The part `before` of a sum, as a part of 2^63. `shift` leaves 64 bits of the sum in `upper`. */
SHUF_FUNCTION uint64_t shuf_weights_part(shuf__u128 before, unsigned shift, uint64_t upper)
{
    return (uint64_t)(((before >> shift) << SHUF_WEIGHTS_BITS) / upper);
}
#endif

/* A table for so many weights has 2^bits columns. */
SHUF_FUNCTION unsigned shuf_weights_bits(uint64_t count)
{
    unsigned bits = 0;
    while (UINT64_C(1) << bits < count)
        bits++;
    return bits;
}

/* The threshold of a full column of a table with 2^bits columns. */
SHUF_FUNCTION uint64_t shuf_weights_full(unsigned bits)
{
    return UINT64_C(1) << (SHUF_WEIGHTS_BITS - bits);
}

SHUF_FUNCTION uint64_t shuf_weights_column(uint64_t threshold, uint64_t alias, unsigned bits)
{
    return threshold << bits | alias;
}

/* The column that a random word selects. */
SHUF_FUNCTION uint64_t shuf_weights_column_of(uint64_t word, unsigned bits)
{
    return word >> 1 >> (SHUF_WEIGHTS_BITS - bits);
}

/* The draw that a random word decides, from its column of a table of 2^bits columns. */
SHUF_FUNCTION uint64_t shuf_weights_draw_from(uint64_t column, unsigned bits, uint64_t word)
{
    const uint64_t x = word >> 1 & (shuf_weights_full(bits) - 1);
    return x < column >> bits ? shuf_weights_column_of(word, bits)
                              : column & ((UINT64_C(1) << bits) - 1);
}

SHUF_FUNCTION uint64_t shuf_weights_draw_of(const uint64_t *table, unsigned bits, uint64_t word)
{
    return shuf_weights_draw_from(table[shuf_weights_column_of(word, bits)], bits, word);
}

#endif
