/* SPDX-License-Identifier: MIT
 *
 * Uniform streams. Each function computes one value from its index. docs/spec.md, "Uniform
 * streams".
 */
#ifndef SHUF_UNIFORM_H
#define SHUF_UNIFORM_H

#include "stream.h"

enum { SHUF_UNIFORM_ROUNDS = 10 };

/* Makes the stream for the functions below. */
SHUF_FUNCTION shuf_stream shuf_uniform_make_keyed(shuf_key key, uint64_t stream)
{
    return shuf_stream_make(key, stream, SHUF_STREAM_UNIFORM);
}

SHUF_FUNCTION shuf_stream shuf_uniform_make(uint64_t seed, uint64_t stream)
{
    return shuf_uniform_make_keyed(shuf_key_of_seed(seed), stream);
}

SHUF_FUNCTION uint32_t shuf_uniform_u32(const shuf_stream *s, uint64_t i)
{
    return shuf_stream_words(s, i / 4, SHUF_UNIFORM_ROUNDS).word[i % 4];
}

SHUF_FUNCTION uint64_t shuf_uniform_u64(const shuf_stream *s, uint64_t i)
{
    const shuf_philox4x32 words = shuf_stream_words(s, i / 2, SHUF_UNIFORM_ROUNDS);
    return (uint64_t)words.word[i % 2 * 2 + 1] << 32 | words.word[i % 2 * 2];
}

/* Takes the upper 24 bits for a float, 53 for a double, as a fraction in [0, 1). All multiples of
 * 2^-24 or 2^-53 are equally likely. */
SHUF_FUNCTION float shuf_uniform_f32_of(uint32_t word)
{
    return (float)(word >> 8) * SHUF__2_MINUS_F32(24);
}

SHUF_FUNCTION double shuf_uniform_f64_of(uint64_t word)
{
    return (double)(word >> 11) * SHUF__2_MINUS(53);
}

SHUF_FUNCTION float shuf_uniform_f32(const shuf_stream *s, uint64_t i)
{
    return shuf_uniform_f32_of(shuf_uniform_u32(s, i));
}

SHUF_FUNCTION double shuf_uniform_f64(const shuf_stream *s, uint64_t i)
{
    return shuf_uniform_f64_of(shuf_uniform_u64(s, i));
}

#endif
