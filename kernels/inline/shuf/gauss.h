/* SPDX-License-Identifier: MIT
 *
 * Normally distributed random numbers: a Hadamard transform makes 32 sums of 32 roughly normal
 * numbers, the *entries*. The method follows A. P. Goucher, "Training a random Gaussian generator"
 * (cp4space, 2022). docs/spec.md, "Gaussian streams", defines the values and gives the reasons.
 *
 *     entry   x_q = a number of one table + a number of another table + a uniform number
 *     sum     s_p = the sum of all 32 entries, each with the sign of row p of the matrix
 *     value   z_p = +-(s_p + dither), scaled; a random word gives the sign and the dither
 *
 * A sum of 32 entries is much nearer to a normal number than one entry (central limit theorem). A
 * block is the 32 values of one transform.
 *
 *     shuf_gauss g = shuf_gauss_make(seed, stream, 0, 1);
 *     double x = shuf_gauss_f64(&g, i);
 *
 * A single value takes as long as its whole block.
 */
#ifndef SHUF_GAUSS_H
#define SHUF_GAUSS_H

#include "gauss_table.h"
#include "half.h"
#include "stream.h"

#include <math.h>
#include <stdbool.h>

enum {
    SHUF_GAUSS_BLOCK = 32,   /* entries, and values, of a transform */
    SHUF_GAUSS_LANES = 32,   /* blocks of a superblock */
    SHUF_GAUSS_SUPER = 1024, /* values of a superblock */
    SHUF_GAUSS_DRAWS = 16,   /* draws of a block; only doubles need the last 8 */
    SHUF_GAUSS_DITHER = 23,  /* bits of a dither, which fills the gaps between sums */
};

/* Up to this magnitude a float can show more bits than the sum and its dither have. Such a float is
 * rounded from the double. */
#define SHUF_GAUSS_SMALL SHUF__2_MINUS(12)

typedef struct shuf_gauss {
    shuf_stream words;
    double std, mean;
    float std_f32, mean_f32;
} shuf_gauss;

/* The sums of one block. word[p] has the sign and the dither of s[p]. */
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

/* The block of value i, and the position of value i in the block. Blocks take turns in pairs of
 * values: values 0 and 1 are in block 0, 2 and 3 in block 1, ..., 62 and 63 in block 31, 64 and 65
 * in block 0. */
SHUF_FUNCTION uint64_t shuf_gauss_block_of(uint64_t i)
{
    return i / SHUF_GAUSS_SUPER * SHUF_GAUSS_LANES + i % 64 / 2;
}

SHUF_FUNCTION unsigned shuf_gauss_position_of(uint64_t i)
{
    return (unsigned)(i % SHUF_GAUSS_SUPER / 64 * 2 + i % 2);
}

/* Replaces x by its Walsh-Hadamard transform, in natural order: 32 sums of all numbers, each sum
 * with its own pattern of plus and minus signs. */
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

/* An entry minus 1/2, which is an integer. The halves add up to 16 in sum 0, and to 0 in all other
 * sums. shuf_gauss_block_make() adds the 16. */
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

/* The standard normal number at position p, as a double. Its last bits come from 23 bits of dither,
 * and from 64 bits of a draw of the block's second half. */
SHUF_FUNCTION double shuf__gauss_double(const shuf_gauss *g, const shuf_gauss_block *b, unsigned p)
{
    const shuf_stream_draw second = shuf_stream_draw_make(
        &g->words, SHUF_GAUSS_DRAWS * b->number + SHUF_GAUSS_DRAWS / 2 + p / 4);
    const double dither = shuf__gauss_dither(b->word[p]);
    const double high =
        fma(dither, SHUF__2_MINUS(37), fma(b->s[p], SHUF__2_MINUS(19), -SHUF__2_MINUS(15)));
    const double low = fma(second.word[p % 4], SHUF__2_MINUS(69),
                           (second.early[p % 4] + 0.5) * SHUF__2_MINUS(101));
    return b->word[p] >> 31 ? -(high + low) : high + low;
}

/* The number as a float is the rounded sum of two terms: the dither and the sum of the block. The
 * last bit of the dither is set. So the exact number is never half-way between two floats. */
SHUF_FUNCTION float shuf__gauss_dither_f32(const shuf_gauss_block *b, unsigned p)
{
    return (float)(0x800001 | shuf__gauss_dither(b->word[p]));
}

SHUF_FUNCTION float shuf__gauss_sum_f32(const shuf_gauss_block *b, unsigned p)
{
    return (float)(b->s[p] - 48) * SHUF__2_MINUS_F32(19);
}

/* The standard normal number at position p, as a float. */
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

/* The standard normal number at position p, rounded towards 0 to a float whose last bit is then
 * set. If this float is rounded to 16 bits, the result is the exact number rounded to 16 bits. */
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
