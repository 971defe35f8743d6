/* SPDX-License-Identifier: MIT
 *
 * The streams of shufd, computed by the inline C.
 */
#include "stream.h"

#include "shuf/box_muller.h"
#include "shuf/gauss.h"
#include "shuf/integers.h"
#include "shuf/uniform.h"

static double value_of(const shuf_gauss *g, const shuf_gauss_block *block, unsigned position,
                       shuf_dtype dtype)
{
    switch (dtype) {
    case SHUF_F64:
        return shuf_gauss_block_f64(g, block, position);
    case SHUF_F16:
        return shuf_of_f16(shuf_gauss_block_f16(g, block, position));
    case SHUF_BF16:
        return shuf_of_bf16(shuf_gauss_block_bf16(g, block, position));
    default:
        return shuf_gauss_block_f32(g, block, position);
    }
}

static void fill_gauss(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                       size_t count, double *value)
{
    const shuf_gauss g = shuf_gauss_make(seed, stream, 0, 1);
    for (size_t i = 0; i < count; i += SHUF_GAUSS_SUPER)
        for (unsigned lane = 0; lane < SHUF_GAUSS_LANES; lane++) {
            const shuf_gauss_block block =
                shuf_gauss_block_make(&g, shuf_gauss_block_of(first + i) + lane);
            for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p++)
                value[i + 64 * (p / 2) + 2 * lane + p % 2] = value_of(&g, &block, p, dtype);
        }
}

static void fill_uniform(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                         size_t count, double *value)
{
    const shuf_stream s = shuf_uniform_make(seed, stream);
    const unsigned words = dtype == SHUF_F64 ? 2 : 1;
    for (size_t i = 0; i < count; i += 4 / words) {
        const shuf_philox4x32 w =
            shuf_stream_words(&s, (first + i) * words / 4, SHUF_UNIFORM_ROUNDS);
        for (unsigned k = 0; k < 4 && words == 1; k++)
            value[i + k] = shuf_uniform_f32_of(w.word[k]);
        for (unsigned k = 0; k < 2 && words == 2; k++)
            value[i + k] = shuf_uniform_f64_of((uint64_t)w.word[2 * k + 1] << 32 | w.word[2 * k]);
    }
}

/* Integers below 3 * 2^30 or 3 * 2^62, for which a quarter of the words do not decide. A third of
 * each is a word of 30 or 62 bits, all equally likely. */
static void fill_integers(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                          size_t count, double *value)
{
    const bool wide = dtype == SHUF_F64;
    const shuf_integers s = shuf_integers_make(seed, stream, UINT64_C(3) << (wide ? 62 : 30));
    for (size_t i = 0; i < count; i++)
        value[i] = wide ? shuf_uniform_f64_of(shuf_integers_u64(&s, first + i) / 3 << 2)
                        : shuf_uniform_f32_of(shuf_integers_u32(&s, first + i) / 3 << 2);
}

static double narrowed(const shuf_box_muller *b, shuf_dtype dtype, float z)
{
    return dtype == SHUF_F32 ? (double)z
                             : shuf__dtype_round(dtype, shuf_box_muller_scaled_odd(b, z));
}

static void fill_box_muller(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                            size_t count, double *value)
{
    const shuf_box_muller b = shuf_box_muller_make(seed, stream, 0, 1);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const unsigned each = dtype == SHUF_F64 ? 2 : 4;
    for (size_t i = 0; i < count; i += each) {
        const shuf_stream_draw draw = shuf_stream_draw_make(&b.words, (first + i) / each);
        if (dtype == SHUF_F64) {
            const shuf_box_muller_wide words = shuf_box_muller_wide_of(&draw);
            shuf_box_muller_pair_f64(&terms, &words, value + i);
            continue;
        }
        for (unsigned k = 0; k < each; k += 2) {
            const shuf_box_muller_words words = shuf_box_muller_words_of(&draw, (int)k / 2);
            float z[2];
            shuf_box_muller_pair_f32(&words, z);
            value[i + k] = narrowed(&b, dtype, z[0]);
            value[i + k + 1] = narrowed(&b, dtype, z[1]);
        }
    }
}

const struct shuf__stream_generator shuf__stream_gauss = {
    "gauss", "normal: the Gaussian stream of shufd", false, fill_gauss};
const struct shuf__stream_generator shuf__stream_box_muller = {
    "box-muller", "normal: shufd's stream by Box and Muller's method", false, fill_box_muller};
const struct shuf__stream_generator shuf__stream_uniform = {
    "uniform", "uniform: the uniform stream of shufd", true, fill_uniform};
const struct shuf__stream_generator shuf__stream_integers = {
    "integers", "uniform: shufd's integers below 3 * 2^30 or 3 * 2^62, divided by 3", true,
    fill_integers};
