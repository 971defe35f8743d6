/* SPDX-License-Identifier: MIT
 *
 * Bernoulli streams: independent bits, each 1 with probability p. docs/spec.md, "Bernoulli
 * streams".
 *
 * A bit is 1 if a random binary fraction is below p. The comparison begins with the first digits,
 * and ends where they differ (D. E. Knuth, A. C. Yao: "The complexity of nonuniform random number
 * generation", 1976). One evaluation of Philox gives one digit of 128 fractions, so bit operations
 * compare 128 of them at a time, and about 8 digits decide all of them.
 *
 *     shuf_bernoulli b = shuf_bernoulli_make(seed, stream, 0.1);
 *     uint32_t bits = shuf_bernoulli_u32(&b, i);
 */
#ifndef SHUF_BERNOULLI_H
#define SHUF_BERNOULLI_H

#include "stream.h"

#include <math.h>

enum {
    SHUF_BERNOULLI_ROUNDS = 10,
    SHUF_BERNOULLI_DIGITS = 63, /* of p and of the fractions */
};

typedef struct shuf_bernoulli {
    shuf_stream words;
    uint64_t threshold; /* p * 2^63, rounded; 2^63 if p is 1 */
} shuf_bernoulli;

/* p: 0 to 1. */
SHUF_FUNCTION shuf_bernoulli shuf_bernoulli_make_keyed(shuf_key key, uint64_t stream, double p)
{
    shuf_bernoulli b;
    b.words = shuf_stream_make(key, stream, SHUF_STREAM_BERNOULLI);
    b.threshold = (uint64_t)rint(p * (double)(UINT64_C(1) << SHUF_BERNOULLI_DIGITS));
    return b;
}

SHUF_FUNCTION shuf_bernoulli shuf_bernoulli_make(uint64_t seed, uint64_t stream, double p)
{
    return shuf_bernoulli_make_keyed(shuf_key_of_seed(seed), stream, p);
}

/* The comparison of 32 fractions with the threshold. */
typedef struct shuf__bernoulli_bits {
    uint32_t less;  /* fractions that are below the threshold */
    uint32_t equal; /* fractions whose digits have been those of the threshold */
} shuf__bernoulli_bits;

/* Compares the digits before the point: 1 of the threshold if p is 1, 0 of all fractions. */
SHUF_FUNCTION shuf__bernoulli_bits shuf__bernoulli_begin(uint64_t threshold)
{
    const uint32_t certain = 0 - (uint32_t)(threshold >> SHUF_BERNOULLI_DIGITS);
    const shuf__bernoulli_bits bits = {certain, ~certain};
    return bits;
}

/* Compares the next digits. `ones`: all bits set if that of the threshold is 1, else 0. */
SHUF_FUNCTION void shuf__bernoulli_compare(shuf__bernoulli_bits *bits, uint32_t digits,
                                           uint32_t ones)
{
    bits->less |= bits->equal & ones & ~digits;
    bits->equal &= ~(digits ^ ones);
}

/* The bits 128 * group to 128 * group + 127. The digits after the last 1 of the threshold decide
 * nothing. */
SHUF_FUNCTION shuf_philox4x32 shuf_bernoulli_group(const shuf_bernoulli *b, uint64_t group)
{
    shuf__bernoulli_bits bits[4];
    shuf_philox4x32 result;
    uint64_t rest = b->threshold << 1;
    uint32_t open = 1;
    for (int i = 0; i < 4; i++)
        bits[i] = shuf__bernoulli_begin(b->threshold);
    for (uint32_t digit = 0; rest != 0 && open != 0; digit++, rest <<= 1) {
        shuf_stream words = b->words;
        words.high[0] ^= digit;
        const shuf_philox4x32 digits = shuf_stream_words(&words, group, SHUF_BERNOULLI_ROUNDS);
        open = 0;
        for (int i = 0; i < 4; i++) {
            shuf__bernoulli_compare(&bits[i], digits.word[i], 0 - (uint32_t)(rest >> 63));
            open |= bits[i].equal;
        }
    }
    for (int i = 0; i < 4; i++)
        result.word[i] = bits[i].less;
    return result;
}

/* Value i of the stream, i < SHUF_STREAM_MAX: the bits 32 i to 32 i + 31, or 64 i to 64 i + 63, the
 * first one lowest. */
SHUF_FUNCTION uint32_t shuf_bernoulli_u32(const shuf_bernoulli *b, uint64_t i)
{
    return shuf_bernoulli_group(b, i / 4).word[i % 4];
}

SHUF_FUNCTION uint64_t shuf_bernoulli_u64(const shuf_bernoulli *b, uint64_t i)
{
    const shuf_philox4x32 words = shuf_bernoulli_group(b, i / 2);
    return (uint64_t)words.word[i % 2 * 2 + 1] << 32 | words.word[i % 2 * 2];
}

#endif
