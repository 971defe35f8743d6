/* SPDX-License-Identifier: MIT
 *
 * Normally distributed streams: single values, or blocks of 32. Random words choose 32 roughly
 * normal numbers from tables. A Hadamard transform makes 32 sums of them, with plus and minus
 * signs. By the central limit theorem these sums are much nearer to a normal distribution. The
 * method follows A. P. Goucher, "Training a random Gaussian generator" (cp4space, 2022).
 * docs/spec.md, "Gaussian streams", lists the differences and their reasons.
 *
 *     shuf_gauss g = shuf_gauss_make(seed, stream, 0, 1);
 *     double x = shuf_gauss_f64(&g, i);
 *
 * The computation of a single value takes as long as that of its whole block of 32 values.
 */
#ifndef SHUF_GAUSS_H
#define SHUF_GAUSS_H

#include "gauss_table.h"
#include "half.h"
#include "stream.h"

#include <math.h>
#include <stdbool.h>

enum {
    SHUF_GAUSS_BLOCK = 32,   /* values that share a transform */
    SHUF_GAUSS_LANES = 32,   /* blocks of a superblock */
    SHUF_GAUSS_SUPER = 1024, /* values of a superblock */
    SHUF_GAUSS_DRAWS = 16,   /* draws of a block; the second half gives doubles more bits */
    SHUF_GAUSS_DITHER = 23,  /* low bits of a word: the random bits below the unit of a sum */
};

/* A float up to this magnitude needs more random bits than the dither of its word has. */
#define SHUF_GAUSS_SMALL SHUF__2_MINUS(12)

typedef struct shuf_gauss {
    shuf_stream words;
    double std, mean;
    float std_f32, mean_f32;
} shuf_gauss;

/* The sums of one block. The word of a sum has its random sign and its dither. */
typedef struct shuf_gauss_block {
    uint64_t number;
    int32_t s[SHUF_GAUSS_BLOCK];
    uint32_t word[SHUF_GAUSS_BLOCK];
} shuf_gauss_block;

/* mean: at most 2^100 in magnitude; std: 2^-100 to 2^100. */
SHUF_FUNCTION shuf_gauss shuf_gauss_make_keyed(shuf_key key, uint64_t stream, double mean,
                                               double std)
{
    shuf_gauss g;
    g.words = shuf_stream_make(key, stream, SHUF_STREAM_GAUSS);
    g.std = std;
    g.mean = mean;
    g.std_f32 = (float)std;
    g.mean_f32 = (float)mean;
    return g;
}

SHUF_FUNCTION shuf_gauss shuf_gauss_make(uint64_t seed, uint64_t stream, double mean, double std)
{
    return shuf_gauss_make_keyed(shuf_key_of_seed(seed), stream, mean, std);
}

/* The block of value i, and its position in the block. Values 2 k and 2 k + 1 are neighbours in one
 * block. The next pair of values is in the next of the superblock's 32 blocks. */
SHUF_FUNCTION uint64_t shuf_gauss_block_of(uint64_t i)
{
    return i / SHUF_GAUSS_SUPER * SHUF_GAUSS_LANES + i % 64 / 2;
}

SHUF_FUNCTION unsigned shuf_gauss_position_of(uint64_t i)
{
    return (unsigned)(i % SHUF_GAUSS_SUPER / 64 * 2 + i % 2);
}

/* Replaces x by its Walsh-Hadamard transform, in natural order: 32 sums of all inputs, each with
 * another pattern of plus and minus signs. */
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

#ifndef __CUDA_ARCH__ /* only the host has the tables */

/* An input of the transform, less 1/2, which makes it an integer. shuf_gauss_block_make() adds the
 * halves to the sums. */
SHUF_FUNCTION int32_t shuf__gauss_entry(uint32_t word, unsigned table)
{
    const int32_t spread = (int32_t)(word >> 8 & 0x7fff) - 0x4000;
    return shuf_gauss_table[word >> 24][table % 16] +
           shuf_gauss_table[word & 255][(table + 8) % 16] + spread;
}

SHUF_FUNCTION shuf_gauss_block shuf_gauss_block_make(const shuf_gauss *g, uint64_t block)
{
    shuf_gauss_block b;
    const unsigned lane = (unsigned)(block % SHUF_GAUSS_LANES);
    b.number = block;
    for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p += 4) {
        const shuf_stream_draw draw =
            shuf_stream_draw_make(&g->words, SHUF_GAUSS_DRAWS * block + p / 4);
        for (unsigned k = 0; k < 4; k++) {
            b.s[p + k] = shuf__gauss_entry(draw.early[k], p + k + lane);
            b.word[p + k] = draw.word[k];
        }
    }
    shuf__gauss_transform(b.s);
    b.s[0] += SHUF_GAUSS_BLOCK / 2;
    return b;
}

#endif

#ifndef __CUDA_ARCH__

/* The dither of a word, in units of 2^-37. */
SHUF_FUNCTION uint32_t shuf__gauss_dither(uint32_t word)
{
    return word & ((1u << SHUF_GAUSS_DITHER) - 1);
}

/* The standard normal number at position p, as a double. It has 23 bits of dither from the block's
 * word, and 64 more from a draw of the second half. */
SHUF_FUNCTION double shuf__gauss_double(const shuf_gauss *g, const shuf_gauss_block *b, unsigned p)
{
    const shuf_stream_draw tail = shuf_stream_draw_make(
        &g->words, SHUF_GAUSS_DRAWS * b->number + SHUF_GAUSS_DRAWS / 2 + p / 4);
    const double dither = shuf__gauss_dither(b->word[p]);
    const double high =
        fma(dither, SHUF__2_MINUS(37), fma(b->s[p], SHUF__2_MINUS(19), -SHUF__2_MINUS(15)));
    const double low =
        fma(tail.word[p % 4], SHUF__2_MINUS(69), (tail.early[p % 4] + 0.5) * SHUF__2_MINUS(101));
    return b->word[p] >> 31 ? -(high + low) : high + low;
}

/* The number as a float is a sum of two terms: the dither and the block's sum. The code sets the
 * dither's last bit, so the exact sum is never midway between two floats. */
SHUF_FUNCTION float shuf__gauss_dither_f32(const shuf_gauss_block *b, unsigned p)
{
    return (float)(0x800001 | shuf__gauss_dither(b->word[p]));
}

SHUF_FUNCTION float shuf__gauss_sum_f32(const shuf_gauss_block *b, unsigned p)
{
    return (float)(b->s[p] - 48) * SHUF__2_MINUS_F32(19);
}

/* The number as a float. */
SHUF_FUNCTION float shuf__gauss_float(const shuf_gauss *g, const shuf_gauss_block *b, unsigned p)
{
    const float z =
        fmaf(shuf__gauss_dither_f32(b, p), SHUF__2_MINUS_F32(37), shuf__gauss_sum_f32(b, p));
    if (fabsf(z) <= (float)SHUF_GAUSS_SMALL)
        return (float)shuf__gauss_double(g, b, p);
    return b->word[p] >> 31 ? -z : z;
}

/* Value number p of a block. */
SHUF_FUNCTION double shuf_gauss_block_f64(const shuf_gauss *g, const shuf_gauss_block *b,
                                          unsigned p)
{
    return fma(shuf__gauss_double(g, b, p), g->std, g->mean);
}

SHUF_FUNCTION float shuf_gauss_block_f32(const shuf_gauss *g, const shuf_gauss_block *b, unsigned p)
{
    return fmaf(shuf__gauss_float(g, b, p), g->std_f32, g->mean_f32);
}

/* The number rounded towards 0 to a float, with the last bit set. Rounding this float again to 16
 * bits gives the same result as rounding the exact number to 16 bits. */
SHUF_FUNCTION float shuf__gauss_sticky(const shuf_gauss *g, const shuf_gauss_block *b, unsigned p)
{
    const float dither = shuf__gauss_dither_f32(b, p), s = shuf__gauss_sum_f32(b, p);
    float z = fmaf(dither, SHUF__2_MINUS_F32(37), s);
    if (fabsf(z) <= (float)SHUF_GAUSS_SMALL)
        return shuf__float_sticky_of(shuf__gauss_double(g, b, p));
    z = shuf__float_sticky(z, fmaf(dither, SHUF__2_MINUS_F32(37), s - z));
    return b->word[p] >> 31 ? -z : z;
}

SHUF_FUNCTION uint16_t shuf_gauss_block_f16(const shuf_gauss *g, const shuf_gauss_block *b,
                                            unsigned p)
{
    return shuf_f16(fmaf(shuf__gauss_sticky(g, b, p), g->std_f32, g->mean_f32));
}

SHUF_FUNCTION uint16_t shuf_gauss_block_bf16(const shuf_gauss *g, const shuf_gauss_block *b,
                                             unsigned p)
{
    return shuf_bf16(fmaf(shuf__gauss_sticky(g, b, p), g->std_f32, g->mean_f32));
}

/* Value i of the stream, i < SHUF_STREAM_MAX. */
SHUF_FUNCTION double shuf_gauss_f64(const shuf_gauss *g, uint64_t i)
{
    const shuf_gauss_block b = shuf_gauss_block_make(g, shuf_gauss_block_of(i));
    return shuf_gauss_block_f64(g, &b, shuf_gauss_position_of(i));
}

SHUF_FUNCTION float shuf_gauss_f32(const shuf_gauss *g, uint64_t i)
{
    const shuf_gauss_block b = shuf_gauss_block_make(g, shuf_gauss_block_of(i));
    return shuf_gauss_block_f32(g, &b, shuf_gauss_position_of(i));
}

/* The bits of a binary16, or of a bfloat16. */
SHUF_FUNCTION uint16_t shuf_gauss_f16(const shuf_gauss *g, uint64_t i)
{
    const shuf_gauss_block b = shuf_gauss_block_make(g, shuf_gauss_block_of(i));
    return shuf_gauss_block_f16(g, &b, shuf_gauss_position_of(i));
}

SHUF_FUNCTION uint16_t shuf_gauss_bf16(const shuf_gauss *g, uint64_t i)
{
    const shuf_gauss_block b = shuf_gauss_block_make(g, shuf_gauss_block_of(i));
    return shuf_gauss_block_bf16(g, &b, shuf_gauss_position_of(i));
}

#endif

#endif
