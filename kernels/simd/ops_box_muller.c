/* SPDX-License-Identifier: MIT
 *
 * The loops of Gaussian streams by Box and Muller's method (shuf/box_muller.h). A loop makes 1024
 * values at a time. Each lane of a vector has one draw of Philox. Like simd_ops.c, this file is
 * compiled once for each instruction set.
 */
#include "simd/simd_ops.h"

#include <string.h>

#ifdef SHUF__SIMD_VECTORS

#include "stream_vector.h"

/* ---- Floats ---- */

static const uint32_t sign_32 = 0x80000000;

static inline floats radius_32(vector high, vector low)
{
    static const float c[] = {SHUF_BOX_MULLER_LOG_F32};
    const vector rest = all(~sign_32);
    const floats h = V(cvtepi32_ps)(VI(and)(high, rest));
    const floats l = V(cvtepi32_ps)(VI(or)(VI(and)(low, rest), all(1)));
    const floats x = V(fmadd_ps)(l, V(set1_ps)(0x1p-31f), h);
    const vector exponent = VI(and)(bits_of_floats(x), all(0x7f800000));
    const vector k =
        VI(andnot)(V(srai_epi32)(high, 31), V(sub_epi32)(all(UINT32_C(158) << 23), exponent));
    const vector scale =
        VI(xor)(V(add_epi32)(k, all(UINT32_C(95) << 23)), VI(andnot)(high, all(sign_32)));
    const floats one = chosen_32(high, V(set1_ps)(0.0f), V(set1_ps)(1.0f));
    const floats a = V(fmadd_ps)(x, floats_of_bits(scale), one);
    floats w = V(set1_ps)(c[9]);
    for (int i = 8; i >= 0; i--)
        w = V(fmadd_ps)(a, w, V(set1_ps)(c[i]));
    const floats octaves =
        V(mul_ps)(V(cvtepi32_ps)(k), V(set1_ps)(SHUF_BOX_MULLER_OCTAVE_F32 * 0x1p-23f));
    return V(sqrt_ps)(V(fmadd_ps)(a, w, octaves));
}

static inline void angle_32(vector high, vector low, floats to[2])
{
    static const float s[] = {SHUF_BOX_MULLER_SIN_F32}, c[] = {SHUF_BOX_MULLER_COS_F32};
    const vector rest = all(~sign_32);
    const floats h = V(cvtepi32_ps)(VI(and)(high, rest));
    const floats l = V(cvtepi32_ps)(VI(and)(low, rest));
    const floats y = V(fmadd_ps)(l, V(set1_ps)(0x1p-62f), V(mul_ps)(h, V(set1_ps)(0x1p-31f)));
    const floats z = V(mul_ps)(y, y);
    floats sine = V(set1_ps)(s[3]), cosine = V(set1_ps)(c[3]);
    for (int i = 2; i >= 0; i--) {
        sine = V(fmadd_ps)(z, sine, V(set1_ps)(s[i]));
        cosine = V(fmadd_ps)(z, cosine, V(set1_ps)(c[i]));
    }
    to[0] = floats_of_bits(VI(xor)(bits_of_floats(cosine), VI(and)(high, all(sign_32))));
    to[1] = floats_of_bits(VI(xor)(bits_of_floats(V(mul_ps)(sine, y)), VI(and)(low, all(sign_32))));
}

static inline floats small_32(vector low)
{
    return V(fmadd_ps)(V(cvtepi32_ps)(VI(and)(low, all(~sign_32))), V(set1_ps)(0x1p-41f),
                       V(set1_ps)(-0x1p-11f));
}

/* The four values of each draw. */
static inline void make_z(const shuf_stream *s, uint64_t index, floats z[4])
{
    struct draws d;
    make_draws(s, index, &d);
    for (int i = 0; i < 4; i += 2) {
        const floats radius = radius_32(d.word[i], d.early[i]);
        const floats turn = small_32(VI(or)(d.early[i], all(1)));
        const floats grow = small_32(d.early[i + 1]);
        floats angle[2];
        angle_32(d.word[i + 1], d.early[i + 1], angle);
        const floats x = V(mul_ps)(angle[0], radius), y = V(mul_ps)(angle[1], radius);
        const floats first = V(fmadd_ps)(x, grow, x);
        const floats second = V(fmadd_ps)(y, V(add_ps)(turn, grow), y);
        z[i] = chosen_32(d.early[i], second, first);
        z[i + 1] = chosen_32(d.early[i], first, second);
    }
}

static inline floats scaled(const shuf_box_muller *b, floats z)
{
    return V(fmadd_ps)(z, V(set1_ps)(b->std_f32), V(set1_ps)(b->mean_f32));
}

static inline floats scaled_odd(const shuf_box_muller *b, floats z)
{
    return scaled(b, floats_of_bits(VI(or)(bits_of_floats(z), all(1))));
}

static void draw_f32(const union shuf__source *source, uint64_t super, void *out)
{
    const shuf_box_muller b = source->box_muller;
    for (uint64_t i = 0; i < SHUF__SUPER; i += 4 * LANES) {
        floats z[4];
        vector bits[4];
        make_z(&b.words, (super * SHUF__SUPER + i) / 4, z);
        for (int k = 0; k < 4; k++)
            bits[k] = bits_of_floats(scaled(&b, z[k]));
        store_fours((uint32_t *)out + i, bits);
    }
}

static inline vector both_f16(floats x, floats y)
{
    return VI(or)(halves_of(x), V(slli_epi32)(halves_of(y), 16));
}

/* Rounds as shuf_bf16() does, into the upper half of each lane. The lower half is undefined. */
static inline vector rounded_bf16(floats x)
{
    const vector bits = bits_of_floats(x), odd = VI(and)(V(srli_epi32)(bits, 16), all(1));
    return V(add_epi32)(V(add_epi32)(bits, all(0x7fff)), odd);
}

static inline vector both_bf16(floats x, floats y)
{
    return VI(or)(V(srli_epi32)(rounded_bf16(x), 16), VI(and)(rounded_bf16(y), all(0xffff0000)));
}

#define DRAW_HALVES(name)                                                                \
    static void draw_##name(const union shuf__source *source, uint64_t super, void *out) \
    {                                                                                    \
        const shuf_box_muller b = source->box_muller;                                    \
        for (uint64_t i = 0; i < SHUF__SUPER; i += 4 * LANES) {                          \
            floats z[4];                                                                 \
            make_z(&b.words, (super * SHUF__SUPER + i) / 4, z);                          \
            const vector low = both_##name(scaled_odd(&b, z[0]), scaled_odd(&b, z[1]));  \
            const vector high = both_##name(scaled_odd(&b, z[2]), scaled_odd(&b, z[3])); \
            store_pairs_32((float *)((uint16_t *)out + i), floats_of_bits(low),          \
                           floats_of_bits(high));                                        \
        }                                                                                \
    }

DRAW_HALVES(f16)
DRAW_HALVES(bf16)

/* ---- Doubles ---- */

static inline void angle_64(vector high, vector low, vector swap, doubles to[2])
{
    static const double s[] = {SHUF_BOX_MULLER_SIN_F64}, c[] = {SHUF_BOX_MULLER_COS_F64};
    const vector rest = all_64(~sign_64), sign = all_64(sign_64);
    const doubles h = doubles_of_wide(VI(and)(high, rest));
    const doubles l = doubles_of_wide(VI(and)(low, rest));
    const doubles y = V(fmadd_pd)(l, V(set1_pd)(0x1p-126), V(mul_pd)(h, V(set1_pd)(0x1p-63)));
    const doubles z = V(mul_pd)(y, y);
    doubles sine = V(set1_pd)(s[6]), cosine = V(set1_pd)(c[7]);
    for (int i = 5; i >= 0; i--)
        sine = V(fmadd_pd)(z, sine, V(set1_pd)(s[i]));
    for (int i = 6; i >= 0; i--)
        cosine = V(fmadd_pd)(z, cosine, V(set1_pd)(c[i]));
    cosine = doubles_of_bits(VI(xor)(bits_of_doubles(cosine), VI(and)(high, sign)));
    sine = doubles_of_bits(VI(xor)(bits_of_doubles(V(mul_pd)(sine, y)), VI(and)(low, sign)));
    to[0] = chosen_64(swap, sine, cosine);
    to[1] = chosen_64(swap, cosine, sine);
}

/* Stores both values of each draw, for the lower (0) or upper (1) half of the lanes. */
static inline void put_f64(const shuf_box_muller *b, const struct draws *d, int half, double *out)
{
    const vector swap = joined(d->early[0], d->early[1], half);
    const doubles radius = V(sqrt_pd)(square_64(joined(d->word[0], d->word[1], half), swap));
    const doubles std = V(set1_pd)(b->std), mean = V(set1_pd)(b->mean);
    doubles z[2];
    angle_64(joined(d->word[2], d->word[3], half), joined(d->early[2], d->early[3], half), swap, z);
    for (int k = 0; k < 2; k++)
        z[k] = V(fmadd_pd)(V(mul_pd)(z[k], radius), std, mean);
    store_pairs_64(out, z[0], z[1]);
}

static void draw_f64(const union shuf__source *source, uint64_t super, void *out)
{
    const shuf_box_muller b = source->box_muller;
    for (uint64_t i = 0; i < SHUF__SUPER; i += 2 * LANES) {
        struct draws d;
        make_draws(&b.words, (super * SHUF__SUPER + i) / 2, &d);
        put_f64(&b, &d, 0, (double *)out + i);
        put_f64(&b, &d, 1, (double *)out + i + LANES);
    }
}

#else

static void draw_f64(const union shuf__source *source, uint64_t super, void *out)
{
    const shuf_box_muller *b = &source->box_muller;
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    double *to = out;
    for (uint64_t i = 0; i < SHUF__SUPER; i += 2) {
        const shuf_stream_draw draw =
            shuf_stream_draw_make(&b->words, (super * SHUF__SUPER + i) / 2);
        const shuf_box_muller_wide words = shuf_box_muller_wide_of(&draw);
        double z[2];
        shuf_box_muller_pair_f64(&terms, &words, z);
        for (int k = 0; k < 2; k++)
            to[i + k] = shuf_box_muller_scaled_f64(b, z[k]);
    }
}

static inline void make_z(const shuf_box_muller *b, uint64_t index, float z[4])
{
    const shuf_stream_draw draw = shuf_stream_draw_make(&b->words, index);
    for (int pair = 0; pair < 2; pair++) {
        const shuf_box_muller_words words = shuf_box_muller_words_of(&draw, pair);
        shuf_box_muller_pair_f32(&words, z + 2 * pair);
    }
}

#define DRAW_NARROW(name, type, value)                                                   \
    static void draw_##name(const union shuf__source *source, uint64_t super, void *out) \
    {                                                                                    \
        const shuf_box_muller *b = &source->box_muller;                                  \
        for (uint64_t i = 0; i < SHUF__SUPER; i += 4) {                                  \
            float z[4];                                                                  \
            make_z(b, (super * SHUF__SUPER + i) / 4, z);                                 \
            for (int k = 0; k < 4; k++)                                                  \
                ((type *)out)[i + k] = value;                                            \
        }                                                                                \
    }

DRAW_NARROW(f32, float, shuf_box_muller_scaled_f32(b, z[k]))
DRAW_NARROW(f16, uint16_t, shuf_f16(shuf_box_muller_scaled_odd(b, z[k])))
DRAW_NARROW(bf16, uint16_t, shuf_bf16(shuf_box_muller_scaled_odd(b, z[k])))

#endif

shuf__draw *SHUF__SIMD_NAME(shuf__box_muller)(shuf_dtype dtype)
{
    static shuf__draw *const table[SHUF__DTYPES] = {
        [SHUF_F64] = draw_f64,
        [SHUF_F32] = draw_f32,
        [SHUF_F16] = draw_f16,
        [SHUF_BF16] = draw_bf16,
    };
    return table[dtype];
}
