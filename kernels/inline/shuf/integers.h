/* SPDX-License-Identifier: MIT
 *
 * Streams of integers below a bound, all equally likely. docs/spec.md, "Integer streams".
 *
 * The upper half of word * bound is the value, unless the lower half is below 2^32 mod bound or
 * 2^64 mod bound (D. Lemire: "Fast random integer generation in an interval", ACM Transactions on
 * Modeling and Computer Simulation 29(1), 2019). Then the value takes another word: that of its
 * next attempt.
 *
 *     shuf_integers s = shuf_integers_make(seed, stream, 1000);
 *     uint32_t x = shuf_integers_u32(&s, i);
 */
#ifndef SHUF_INTEGERS_H
#define SHUF_INTEGERS_H

#include "uniform.h"

#include <stdbool.h>

typedef struct shuf_integers {
    shuf_stream words;
    uint64_t bound;
    uint64_t least_u32, least_u64; /* of a lower half that decides: 2^32 and 2^64 modulo bound */
} shuf_integers;

/* bound: 1 to 2^32 for values of 32 bits, to 2^64 - 1 for those of 64. */
SHUF_FUNCTION shuf_integers shuf_integers_make_keyed(shuf_key key, uint64_t stream, uint64_t bound)
{
    shuf_integers s;
    s.words = shuf_stream_make(key, stream, SHUF_STREAM_INTEGERS);
    s.bound = bound;
    s.least_u32 = (UINT64_C(1) << 32) % bound;
    s.least_u64 = (0 - bound) % bound;
    return s;
}

SHUF_FUNCTION shuf_integers shuf_integers_make(uint64_t seed, uint64_t stream, uint64_t bound)
{
    return shuf_integers_make_keyed(shuf_key_of_seed(seed), stream, bound);
}

/* The words of an attempt: value i takes word i of this uniform stream. */
SHUF_FUNCTION shuf_stream shuf_integers_attempt(const shuf_integers *s, uint32_t attempt)
{
    shuf_stream words = s->words;
    words.high[0] ^= attempt;
    return words;
}

/* Sets the value that a word gives. False: the next attempt decides. The product fits, although
 * bound may be 2^32. */
SHUF_FUNCTION bool shuf_integers_u32_of(const shuf_integers *s, uint32_t word, uint32_t *value)
{
    const uint64_t product = (uint64_t)word * (uint32_t)(s->bound - 1) + word;
    *value = (uint32_t)(product >> 32);
    return (uint32_t)product >= (uint32_t)s->least_u32;
}

SHUF_FUNCTION bool shuf_integers_u64_of(const shuf_integers *s, uint64_t word, uint64_t *value)
{
    *value = shuf__mulhi64(word, s->bound);
    return word * s->bound >= s->least_u64;
}

/* Value i of the stream, i < SHUF_STREAM_MAX. */
SHUF_FUNCTION uint32_t shuf_integers_u32(const shuf_integers *s, uint64_t i)
{
    uint32_t value;
    for (uint32_t attempt = 0;; attempt++) {
        const shuf_stream words = shuf_integers_attempt(s, attempt);
        if (shuf_integers_u32_of(s, shuf_uniform_u32(&words, i), &value))
            return value;
    }
}

SHUF_FUNCTION uint64_t shuf_integers_u64(const shuf_integers *s, uint64_t i)
{
    uint64_t value;
    for (uint32_t attempt = 0;; attempt++) {
        const shuf_stream words = shuf_integers_attempt(s, attempt);
        if (shuf_integers_u64_of(s, shuf_uniform_u64(&words, i), &value))
            return value;
    }
}

#endif
