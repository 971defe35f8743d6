/* SPDX-License-Identifier: MIT
 *
 * The words that streams are made of: a stream is Philox4x32 in counter mode, with
 * the key and the upper half of the counter from (seed, stream). docs/spec.md,
 * "Streams".
 */
#ifndef SHUF_STREAM_H
#define SHUF_STREAM_H

#include "key.h"
#include "philox4x32.h"

/* Values of a stream are numbered from 0; offset + count may be at most this. */
#define SHUF_STREAM_MAX (UINT64_C(1) << 62)

typedef struct shuf_stream {
    uint32_t key[2], high[2];
} shuf_stream;

/* Blocks of the key schedule: the distributions have words of their own. */
enum { SHUF_STREAM_GAUSS = 0, SHUF_STREAM_UNIFORM = 1 };

SHUF_FUNCTION shuf_stream shuf_stream_make(uint64_t seed, uint64_t stream, uint64_t block)
{
    uint32_t word[8];
    shuf_stream s;
    shuf_key_words(seed, stream, SHUF_PURPOSE_STREAM, block, word);
    s.key[0] = word[0];
    s.key[1] = word[1];
    s.high[0] = word[2];
    s.high[1] = word[3];
    return s;
}

/* Words 4 * index to 4 * index + 3. */
SHUF_FUNCTION shuf_philox4x32 shuf_stream_words(const shuf_stream *s, uint64_t index, int rounds)
{
    const shuf_philox4x32 counter = {
        {(uint32_t)index, (uint32_t)(index >> 32), s->high[0], s->high[1]}};
    return shuf_philox4x32_rounds(counter, s->key[0], s->key[1], rounds);
}

#endif
