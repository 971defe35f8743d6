/* SPDX-License-Identifier: MIT
 *
 * Exponential numbers: the loops of exponential streams (shuf/exponential.h), and the keys of
 * weighted samples (docs/spec.md). Like simd_ops.c, this file is compiled once for each instruction
 * set, so that fma() is an instruction.
 */
#include "simd/simd_ops.h"

#include <string.h>

void SHUF__SIMD_NAME(shuf__exponential_keys)(const uint64_t *words, double *out, size_t count)
{
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    for (size_t i = 0; i < count; i++)
        out[i] = shuf_box_muller_log_f64(&terms, words + 2 * i);
}

#ifdef SHUF__SIMD_VECTORS

#include "stream_vector.h"

/* Value 0 or 1 of each draw, for the lower (0) or upper (1) half of the lanes. */
static inline doubles value_64(const struct draws *d, int value, int half)
{
    const int i = 2 * value;
    return square_64(joined(d->word[i], d->word[i + 1], half),
                     joined(d->early[i], d->early[i + 1], half));
}

static void draw_f64(const union shuf__source *source, uint64_t super, void *out)
{
    const doubles half_mean = V(set1_pd)(source->exponential.half);
    for (uint64_t i = 0; i < SHUF__SUPER; i += 2 * LANES) {
        struct draws d;
        make_draws(&source->exponential.words, (super * SHUF__SUPER + i) / 2, &d);
        for (int half = 0; half < 2; half++)
            store_pairs_64((double *)out + i + half * LANES,
                           V(mul_pd)(value_64(&d, 0, half), half_mean),
                           V(mul_pd)(value_64(&d, 1, half), half_mean));
    }
}

/* A value of each draw, from its word and its early word. */
static inline floats value_32(vector word, vector early, doubles half_mean)
{
    doubles x[2];
    for (int half = 0; half < 2; half++)
        x[half] = V(mul_pd)(square_64(joined(word, early, half), all_64(0)), half_mean);
    return floats_of_doubles(x[0], x[1]);
}

static void draw_f32(const union shuf__source *source, uint64_t super, void *out)
{
    const doubles half_mean = V(set1_pd)(source->exponential.half);
    for (uint64_t i = 0; i < SHUF__SUPER; i += 4 * LANES) {
        struct draws d;
        vector bits[4];
        make_draws(&source->exponential.words, (super * SHUF__SUPER + i) / 4, &d);
        for (int k = 0; k < 4; k++)
            bits[k] = bits_of_floats(value_32(d.word[k], d.early[k], half_mean));
        store_fours((uint32_t *)out + i, bits);
    }
}

#else

#define DRAW(name, type, each)                                                           \
    static void draw_##name(const union shuf__source *source, uint64_t super, void *out) \
    {                                                                                    \
        const shuf_exponential *e = &source->exponential;                                \
        const shuf_box_muller_terms terms = shuf_box_muller_terms_make();                \
        for (uint64_t i = 0; i < SHUF__SUPER; i += each) {                               \
            const shuf_stream_draw draw =                                                \
                shuf_stream_draw_make(&e->words, (super * SHUF__SUPER + i) / each);      \
            for (int k = 0; k < each; k++)                                               \
                ((type *)out)[i + (unsigned)k] =                                         \
                    shuf_exponential_##name##_of(&terms, e->half, &draw, k);             \
        }                                                                                \
    }

DRAW(f64, double, 2)
DRAW(f32, float, 4)

#endif

shuf__draw *SHUF__SIMD_NAME(shuf__exponential)(shuf_dtype dtype)
{
    return dtype == SHUF_F64 ? draw_f64 : draw_f32;
}
