/* SPDX-License-Identifier: MIT
 *
 * The random words of streams: Philox4x32 (philox4x32.h) in counter mode. It turns each index into
 * four words. (key, stream) selects the key of Philox and two words of its counter. docs/spec.md,
 * "Streams", defines the words.
 */
#ifndef SHUF_STREAM_H
#define SHUF_STREAM_H

#include "key.h"
#include "philox4x32.h"

/* The number of values of a stream. Their indices begin at 0. */
#define SHUF_STREAM_MAX (UINT64_C(1) << 62)

typedef struct shuf_stream {
    uint32_t key[2], high[2];
} shuf_stream;

/* Blocks of the key schedule (key.h). Each use has its own block, so the keys of different uses
 * differ. From 3 to 6, they are uniform words for one use each: indices that a sampler draws with
 * replacement, the generators of records, weighted draws, and weighted samples. */
enum {
    SHUF_STREAM_GAUSS = 0,
    SHUF_STREAM_UNIFORM = 1,
    SHUF_STREAM_BOX_MULLER = 2,
    SHUF_STREAM_REPLACEMENT = 3,
    SHUF_STREAM_RECORD = 4,
    SHUF_STREAM_WEIGHTED = 5,
    SHUF_STREAM_SAMPLE = 6,
    SHUF_STREAM_EXPONENTIAL = 7,
    SHUF_STREAM_BERNOULLI = 8,
    SHUF_STREAM_INTEGERS = 9,
};

SHUF_FUNCTION shuf_stream shuf_stream_make(shuf_key key, uint64_t stream, uint64_t block)
{
    uint32_t word[8];
    shuf_stream s;
    shuf_key_words(key, stream, SHUF_PURPOSE_STREAM, block, word);
    s.key[0] = word[0];
    s.key[1] = word[1];
    s.high[0] = word[2];
    s.high[1] = word[3];
    return s;
}

/* Gaussian and exponential streams take words from Philox twice: after the early rounds and after
 * all rounds. */
enum { SHUF_GAUSS_EARLY_ROUNDS = 6, SHUF_GAUSS_ROUNDS = 9 };

/* One evaluation of Philox: the words after all rounds, and the early words. The two halves of the
 * index are words 0 and 2 of the counter. The first round multiplies these two words, and not words
 * 1 and 3. */
typedef struct shuf_stream_draw {
    uint32_t word[4], early[4];
} shuf_stream_draw;

SHUF_FUNCTION shuf_stream_draw shuf_stream_draw_make(const shuf_stream *s, uint64_t index)
{
    shuf_stream_draw draw;
    shuf_philox4x32 c = {{(uint32_t)index, s->high[0], (uint32_t)(index >> 32), s->high[1]}};
    uint32_t key0 = s->key[0], key1 = s->key[1];
    c = shuf_philox4x32_rounds(c, key0, key1, SHUF_GAUSS_EARLY_ROUNDS);
    for (int i = 0; i < 4; i++)
        draw.early[i] = c.word[i];
    key0 += SHUF_GAUSS_EARLY_ROUNDS * SHUF_PHILOX4X32_WEYL0;
    key1 += SHUF_GAUSS_EARLY_ROUNDS * SHUF_PHILOX4X32_WEYL1;
    c = shuf_philox4x32_rounds(c, key0, key1, SHUF_GAUSS_ROUNDS - SHUF_GAUSS_EARLY_ROUNDS);
    for (int i = 0; i < 4; i++)
        draw.word[i] = c.word[i];
    return draw;
}

/* Words 4 * index to 4 * index + 3. */
SHUF_FUNCTION shuf_philox4x32 shuf_stream_words(const shuf_stream *s, uint64_t index, int rounds)
{
    const shuf_philox4x32 counter = {
        {(uint32_t)index, (uint32_t)(index >> 32), s->high[0], s->high[1]}};
    return shuf_philox4x32_rounds(counter, s->key[0], s->key[1], rounds);
}

#endif
