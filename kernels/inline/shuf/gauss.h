/* SPDX-License-Identifier: MIT
 *
 * Normally distributed streams: value i by itself, or a block of 32 at once. Weak
 * Gaussians from tables, mixed by a Hadamard transform, after A. P. Goucher,
 * "Training a random Gaussian generator" (cp4space, 2022); docs/spec.md, "Gaussian
 * streams", tells what is different and why.
 *
 *     shuf_gauss g = shuf_gauss_make(seed, stream, 0, 1);
 *     double x = shuf_gauss_f64(&g, i);
 *
 * One value costs as much as its block of 32.
 */
#ifndef SHUF_GAUSS_H
#define SHUF_GAUSS_H

#include "gauss_table.h"
#include "half.h"
#include "stream.h"

#include <math.h>
#include <stdbool.h>

enum {
    SHUF_GAUSS_OLD_ROUNDS = 7,
    SHUF_GAUSS_BLOCK = 32,   /* values that share a transform */
    SHUF_GAUSS_LANES = 32,   /* blocks side by side */
    SHUF_GAUSS_SUPER = 1024, /* their values: those from a multiple of it on */
};

/* A stream with its coefficients, which only std and mean decide. */
typedef struct shuf_gauss {
    shuf_stream words;
    double a, c, mean;
    float a_f32, c_f32, mean_f32;
} shuf_gauss;

/* The sums of one block, and the words that they came from. */
typedef struct shuf_gauss_block {
    int32_t s[SHUF_GAUSS_BLOCK];
    uint32_t word[SHUF_GAUSS_BLOCK];
    uint32_t more[SHUF_GAUSS_BLOCK]; /* of doubles alone */
} shuf_gauss_block;

/* mean: at most 2^100 in magnitude; std: 2^-100 to 2^100. */
SHUF_FUNCTION shuf_gauss shuf_gauss_make(uint64_t seed, uint64_t stream, double mean, double std)
{
    shuf_gauss g;
    g.words = shuf_stream_make(seed, stream, SHUF_STREAM_GAUSS);
    g.a = SHUF_GAUSS_A * std;
    g.c = SHUF_GAUSS_C * std;
    g.mean = mean;
    g.a_f32 = (float)g.a;
    g.c_f32 = (float)g.c;
    g.mean_f32 = (float)mean + 0.0f; /* no -0, which the sign of a sum of 0 would show in */
    return g;
}

/* Where value i stands: neighbours in pairs are of one block, pairs go round the blocks. */
SHUF_FUNCTION uint64_t shuf_gauss_block_of(uint64_t i)
{
    return i / SHUF_GAUSS_SUPER * SHUF_GAUSS_LANES + i % 64 / 2;
}

SHUF_FUNCTION unsigned shuf_gauss_position_of(uint64_t i)
{
    return (unsigned)(i % SHUF_GAUSS_SUPER / 64 * 2 + i % 2);
}

/* x becomes its Walsh-Hadamard transform, in natural order. */
SHUF_FUNCTION void shuf__gauss_transform(int32_t x[SHUF_GAUSS_BLOCK])
{
    for (unsigned step = 1; step < SHUF_GAUSS_BLOCK; step *= 2)
        for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p++)
            if (!(p & step)) {
                const int32_t sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

#ifndef __CUDA_ARCH__ /* the tables are the host's */

/* Words 4 * index to 4 * index + 31. */
SHUF_FUNCTION void shuf__gauss_words(const shuf_gauss *g, uint64_t index,
                                     uint32_t word[SHUF_GAUSS_BLOCK])
{
    for (unsigned j = 0; j < SHUF_GAUSS_BLOCK / 4; j++) {
        const shuf_philox4x32 four = shuf_stream_words(&g->words, index + j, SHUF_GAUSS_OLD_ROUNDS);
        for (unsigned k = 0; k < 4; k++)
            word[4 * j + k] = four.word[k];
    }
}

/* wide: doubles are wanted of it, which cost more words. */
SHUF_FUNCTION shuf_gauss_block shuf_gauss_block_make(const shuf_gauss *g, uint64_t block, bool wide)
{
    shuf_gauss_block b;
    const unsigned lane = (unsigned)(block % SHUF_GAUSS_LANES);
    shuf__gauss_words(g, SHUF_GAUSS_BLOCK / 2 * block, b.word);
    if (wide)
        shuf__gauss_words(g, SHUF_GAUSS_BLOCK / 2 * block + SHUF_GAUSS_BLOCK / 4, b.more);
    for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p++)
        b.s[p] = shuf_gauss_table[b.word[p] & 255][(p + lane) % 16] +
                 shuf_gauss_table[b.word[p] >> 8 & 255][(p + lane + 8) % 16];
    shuf__gauss_transform(b.s);
    return b;
}

#endif

SHUF_FUNCTION int32_t shuf__gauss_s(const shuf_gauss_block *b, unsigned p)
{
    return b->word[p] >> 31 ? -b->s[p] : b->s[p];
}

/* Value number p of a block; a double of one that was made wide. */
SHUF_FUNCTION double shuf_gauss_block_f64(const shuf_gauss *g, const shuf_gauss_block *b,
                                          unsigned p)
{
    const double s = shuf__gauss_s(b, p), h = (int32_t)b->more[p];
    return fma(h + 0.5, g->c, fma(s, g->a, g->mean));
}

/* A float draws no more words: the upper halves of its own and a neighbour's take their place. */
SHUF_FUNCTION float shuf_gauss_block_f32(const shuf_gauss *g, const shuf_gauss_block *b, unsigned p)
{
    const int32_t h = (int32_t)((b->word[p] & 0xffff0000) | b->word[p ^ 1] >> 16);
    return fmaf((float)h, g->c_f32, fmaf((float)shuf__gauss_s(b, p), g->a_f32, g->mean_f32));
}

#ifndef __CUDA_ARCH__

/* Value i of the stream, i < SHUF_STREAM_MAX. */
SHUF_FUNCTION double shuf_gauss_f64(const shuf_gauss *g, uint64_t i)
{
    const shuf_gauss_block b = shuf_gauss_block_make(g, shuf_gauss_block_of(i), true);
    return shuf_gauss_block_f64(g, &b, shuf_gauss_position_of(i));
}

SHUF_FUNCTION float shuf_gauss_f32(const shuf_gauss *g, uint64_t i)
{
    const shuf_gauss_block b = shuf_gauss_block_make(g, shuf_gauss_block_of(i), false);
    return shuf_gauss_block_f32(g, &b, shuf_gauss_position_of(i));
}

/* The float rounded: the bits of a binary16, or of a bfloat16. */
SHUF_FUNCTION uint16_t shuf_gauss_f16(const shuf_gauss *g, uint64_t i)
{
    return shuf_f16(shuf_gauss_f32(g, i));
}

SHUF_FUNCTION uint16_t shuf_gauss_bf16(const shuf_gauss *g, uint64_t i)
{
    return shuf_bf16(shuf_gauss_f32(g, i));
}

#endif

#endif
