/* SPDX-License-Identifier: MIT
 *
 * The key schedule: makes the key words of every algorithm by Philox4x64-10 (philox4x64.h), from
 * (key, epoch, purpose). docs/spec.md, "Key schedule".
 */
#ifndef SHUF_KEY_H
#define SHUF_KEY_H

#include "philox4x64.h"

/* The use of key words. Different purposes never share a word. */
enum shuf_purpose {
    SHUF_PURPOSE_PHILOX24 = 1,
    SHUF_PURPOSE_LCG = 2,
    SHUF_PURPOSE_PRIMEFOLD = 3,
    SHUF_PURPOSE_STREAM = 4, /* the number of the stream replaces the epoch */
    SHUF_PURPOSE_CHECK = 5,  /* tells whether two named keys are equal */
    SHUF_PURPOSE_WINDOWED =
        6, /* the keys of a windowed order; the size of a chunk replaces the block */
    SHUF_PURPOSE_MIXTURE = 7, /* the keys of the sources, and of the blocks, of a mixture */
};

/* A key of 128 bits: a seed with 64 zeros, or the bits of a named key. A key file has 32
 * hexadecimal digits, two for each byte: word 0 has the first 8 bytes, and word 1 the others, each
 * with the byte of least value first. */
typedef struct shuf_key {
    uint64_t word[2];
} shuf_key;

SHUF_FUNCTION shuf_key shuf_key_of_seed(uint64_t seed)
{
    shuf_key key = {{seed, 0}};
    return key;
}

/* Makes the 32-bit key words number 8 * block to 8 * block + 7 of a purpose. Each 64-bit word of
 * Philox gives two of them, its low half first. `n` is 0 for an algorithm whose key words do not
 * depend on n. */
SHUF_FUNCTION void shuf_key_words_for(uint64_t n, shuf_key key, uint64_t epoch,
                                      enum shuf_purpose purpose, uint64_t block, uint32_t words[8])
{
    shuf_philox4x64 counter = {{block, epoch, (uint64_t)purpose, n}};
    shuf_philox4x64 lanes = shuf_philox4x64_10(counter, key.word[0], key.word[1]);
    for (int i = 0; i < 4; i++) {
        words[2 * i] = (uint32_t)lanes.word[i];
        words[2 * i + 1] = (uint32_t)(lanes.word[i] >> 32);
    }
}

SHUF_FUNCTION void shuf_key_words(shuf_key key, uint64_t epoch, enum shuf_purpose purpose,
                                  uint64_t block, uint32_t words[8])
{
    shuf_key_words_for(0, key, epoch, purpose, block, words);
}

#endif
