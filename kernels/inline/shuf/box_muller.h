/* SPDX-License-Identifier: MIT
 *
 * Normally distributed random numbers by Box and Muller's method: a random radius r and a random
 * angle t give two independent values, r cos t and r sin t. G. E. P. Box, M. E. Muller: "A note on
 * the generation of random normal deviates", Annals of Mathematical Statistics 29, 1958.
 * docs/spec.md, "Gaussian streams by Box and Muller's method", defines the values.
 *
 *     r = sqrt(-2 ln u)     u in (0, 1): a polynomial gives the logarithm
 *     cos t, sin t          two polynomials for an angle below pi / 4; random bits swap and negate
 *
 *     shuf_box_muller b = shuf_box_muller_make(seed, stream, 0, 1);
 *     double x = shuf_box_muller_f64(&b, i);
 *
 * All machines give the same bits: every operation of IEEE 754 is exact or rounded once, and their
 * order is fixed. No plain addition has a product as an operand, because a compiler may turn a
 * product and an addition into one fused multiply-add with another rounding.
 */
#ifndef SHUF_BOX_MULLER_H
#define SHUF_BOX_MULLER_H

#include "box_muller_table.h"
#include "half.h"
#include "stream.h"

#include <math.h>

typedef struct shuf_box_muller {
    shuf_stream words;
    double mean, std;
    float mean_f32, std_f32;
} shuf_box_muller;

/* mean: at most 2^100 in magnitude; std: 2^-100 to 2^100. */
SHUF_FUNCTION shuf_box_muller shuf_box_muller_make_keyed(shuf_key key, uint64_t stream, double mean,
                                                         double std)
{
    shuf_box_muller b;
    b.words = shuf_stream_make(key, stream, SHUF_STREAM_BOX_MULLER);
    b.mean = mean + 0.0; /* turns -0 into 0, because -0 would change the sign of a zero result */
    b.std = std;
    b.mean_f32 = (float)mean + 0.0f;
    b.std_f32 = (float)std;
    return b;
}

SHUF_FUNCTION shuf_box_muller shuf_box_muller_make(uint64_t seed, uint64_t stream, double mean,
                                                   double std)
{
    return shuf_box_muller_make_keyed(shuf_key_of_seed(seed), stream, mean, std);
}

/* ---- Bits ---- */

SHUF_FUNCTION float shuf__float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SHUF_FUNCTION double shuf__double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SHUF_FUNCTION uint64_t shuf__double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- Functions with faster instructions on a GPU. Both versions give the same bits. ---- */

#ifdef __CUDA_ARCH__

/* Puts each half of x into the low word of a double, which needs no conversion. Only the last
 * addition rounds. */
SHUF_FUNCTION double shuf__double_of(uint64_t x)
{
    const double high = __hiloint2double(0x45300000, (int)(x >> 32));
    return __dadd_rn(__dadd_rn(high, -19342813118337666422669312.0),
                     __hiloint2double(0x43300000, (int)x));
}

/* The fast path of sqrt.rn, without its branch for very small and very large numbers. */
SHUF_FUNCTION float shuf__sqrt_f32(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    const float root = __fmul_rn(x, y);
    return __fmaf_rn(__fmaf_rn(-root, root, x), __fmul_rn(y, 0.5f), root);
}

SHUF_FUNCTION double shuf__sqrt_f64(double x)
{
    double guess;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
    const double y = __hiloint2double(__double2hiint(guess), __double2hiint(x) - 0x3500000);
    const double e = __fma_rn(x, -__dmul_rn(y, y), 1.0);
    const double inverse = __fma_rn(__fma_rn(e, 0.375, 0.5), __dmul_rn(y, e), y);
    const double half =
        __hiloint2double(__double2hiint(inverse) - 0x100000, __double2loint(inverse));
    const double root = __dmul_rn(x, inverse);
    return __fma_rn(__fma_rn(root, -root, x), half, root);
}

/* k < 2^31. */
SHUF_FUNCTION double shuf__double_of_int(int k)
{
    return __dadd_rn(__hiloint2double(0x43300000, k), -4503599627370496.0);
}

#else

/* x < 2^63, rounded. */
SHUF_FUNCTION double shuf__double_of(uint64_t x)
{
    return (double)(int64_t)x;
}

/* x: 2^-100 to 2^100. */
SHUF_FUNCTION float shuf__sqrt_f32(float x)
{
    return sqrtf(x);
}

SHUF_FUNCTION double shuf__sqrt_f64(double x)
{
    return sqrt(x);
}

SHUF_FUNCTION double shuf__double_of_int(int k)
{
    return (double)k;
}

#endif

/* ---- Floats ---- */

/* The words of one radius and one angle. [0] is the high word. */
typedef struct shuf_box_muller_words {
    uint32_t radius[2], angle[2];
} shuf_box_muller_words;

/* The radius sqrt(-2 ln u). The words give a number p from 0 to 1/2. u is 1 - p if the top bit of
 * word[0] is set, else p. So u is precise near 0 and near 1. */
SHUF_FUNCTION float shuf_box_muller_radius_f32(const uint32_t word[2])
{
    const float c[] = {SHUF_BOX_MULLER_LOG_F32};
    const int near_1 = (int)(word[0] >> 31);
    const float high = (float)(int32_t)(word[0] & 0x7fffffff);
    const float low = (float)(int32_t)((word[1] & 0x7fffffff) | 1);
    const float x = fmaf(low, SHUF__2_MINUS_F32(31), high); /* p * 2^32 */
    /* u = 2^-k (1 - a), with 0 < a <= 1/2. The variable k is shifted left by 23 bits. */
    const uint32_t exponent = shuf__float_bits(x) & 0x7f800000;
    const uint32_t k = near_1 ? 0 : (UINT32_C(158) << 23) - exponent;
    float a = fmaf(-x, shuf__float_of_bits((UINT32_C(253) << 23) - exponent), 1.0f);
    if (near_1)
        a = x * SHUF__2_MINUS_F32(32);
    float w = c[9];
    for (int i = 8; i >= 0; i--)
        w = fmaf(a, w, c[i]);
    return shuf__sqrt_f32(
        fmaf(a, w, (float)(int32_t)k * (SHUF_BOX_MULLER_OCTAVE_F32 * SHUF__2_MINUS_F32(23))));
}

/* The cosine and the sine. */
SHUF_FUNCTION void shuf_box_muller_angle_f32(const uint32_t word[2], float to[2])
{
    const float s[] = {SHUF_BOX_MULLER_SIN_F32}, c[] = {SHUF_BOX_MULLER_COS_F32};
    const float high = (float)(int32_t)(word[0] & 0x7fffffff);
    const float low = (float)(int32_t)(word[1] & 0x7fffffff);
    const float y = fmaf(low, SHUF__2_MINUS_F32(62), high * SHUF__2_MINUS_F32(31)),
                z = y * y; /* the angle is y pi / 4 */
    float sine = s[3], cosine = c[3];
    for (int i = 2; i >= 0; i--) {
        sine = fmaf(z, sine, s[i]);
        cosine = fmaf(z, cosine, c[i]);
    }
    to[0] = shuf__float_of_bits(shuf__float_bits(cosine) ^ (word[0] & 0x80000000));
    to[1] = shuf__float_of_bits(shuf__float_bits(sine * y) ^ (word[1] & 0x80000000));
}

/* A number from -2^-11 to 2^-11. */
SHUF_FUNCTION float shuf__box_muller_small(uint32_t low)
{
    return fmaf((float)(int32_t)(low & 0x7fffffff), SHUF__2_MINUS_F32(41), -SHUF__2_MINUS_F32(11));
}

/* Two values of mean 0 and deviation 1. The low words, which the radius and the angle seldom need,
 * change the angle and the radius a little. Else the values would lie on a grid of 24 bits. */
SHUF_FUNCTION void shuf_box_muller_pair_f32(const shuf_box_muller_words *w, float z[2])
{
    const float radius = shuf_box_muller_radius_f32(w->radius);
    const float turn = shuf__box_muller_small(w->radius[1] | 1);
    const float grow = shuf__box_muller_small(w->angle[1]);
    float angle[2];
    shuf_box_muller_angle_f32(w->angle, angle);
    const float x = angle[0] * radius, y = angle[1] * radius;
    const float first = fmaf(x, grow, x), second = fmaf(y, turn + grow, y);
    const int swap = (int)(w->radius[1] >> 31);
    z[0] = swap ? second : first;
    z[1] = swap ? first : second;
}

/* Pair 0 or 1 of a draw. */
SHUF_FUNCTION shuf_box_muller_words shuf_box_muller_words_of(const shuf_stream_draw *d, int pair)
{
    const shuf_box_muller_words w = {{d->word[2 * pair], d->early[2 * pair]},
                                     {d->word[2 * pair + 1], d->early[2 * pair + 1]}};
    return w;
}

/* ---- Doubles: the same functions with words of 64 bits ---- */

typedef struct shuf_box_muller_wide {
    uint64_t radius[2], angle[2];
} shuf_box_muller_wide;

/* The coefficients of the polynomials. A GPU needs them in constant memory, because its
 * instructions have no room for a 64-bit constant. */
typedef struct shuf_box_muller_terms {
    double log[22], sine[7], cosine[8];
} shuf_box_muller_terms;

SHUF_FUNCTION shuf_box_muller_terms shuf_box_muller_terms_make(void)
{
    const shuf_box_muller_terms terms = {
        {SHUF_BOX_MULLER_LOG_F64}, {SHUF_BOX_MULLER_SIN_F64}, {SHUF_BOX_MULLER_COS_F64}};
    return terms;
}

/* The square of the radius, -2 ln u. */
SHUF_FUNCTION double shuf_box_muller_log_f64(const shuf_box_muller_terms *terms,
                                             const uint64_t word[2])
{
    const double *const c = terms->log;
    const uint64_t mask = UINT64_MAX >> 1;
    const int near_1 = (int)(word[0] >> 63);
    const double high = shuf__double_of(word[0] & mask);
    const double low = shuf__double_of((word[1] & mask) | 1);
    const double x = fma(low, SHUF__2_MINUS(63), high); /* p * 2^64 */
    const int k = near_1 ? 0 : 1086 - (int)(shuf__double_bits(x) >> 52);
    const uint64_t sign = ~word[0] >> 63 << 63;
    const double scale = shuf__double_of_bits((uint64_t)(k + 959) << 52 | sign);
    const double a = fma(x, scale, near_1 ? 0.0 : 1.0), b = a * a;
    double odd = c[21], even = c[20];
    for (int i = 19; i > 1; i -= 2) {
        odd = fma(b, odd, c[i]);
        even = fma(b, even, c[i - 1]);
    }
    odd = fma(b, odd, c[1]);
    const double w = fma(a, fma(a, even, odd), c[0]);
    return fma(a, w, shuf__double_of_int(k) * SHUF_BOX_MULLER_OCTAVE_F64);
}

SHUF_FUNCTION double shuf_box_muller_radius_f64(const shuf_box_muller_terms *terms,
                                                const uint64_t word[2])
{
    return shuf__sqrt_f64(shuf_box_muller_log_f64(terms, word));
}

SHUF_FUNCTION void shuf_box_muller_angle_f64(const shuf_box_muller_terms *terms,
                                             const uint64_t word[2], uint64_t swap, double to[2])
{
    const double *const s = terms->sine, *const c = terms->cosine;
    const uint64_t mask = UINT64_MAX >> 1;
    const double high = shuf__double_of(word[0] & mask), low = shuf__double_of(word[1] & mask);
    const double y = fma(low, SHUF__2_MINUS(126), high * SHUF__2_MINUS(63)), z = y * y;
    double sine = s[6], cosine = c[7];
    for (int i = 5; i >= 0; i--)
        sine = fma(z, sine, s[i]);
    for (int i = 6; i >= 0; i--)
        cosine = fma(z, cosine, c[i]);
    cosine = shuf__double_of_bits(shuf__double_bits(cosine) ^ (word[0] & ~mask));
    sine = shuf__double_of_bits(shuf__double_bits(sine * y) ^ (word[1] & ~mask));
    to[0] = swap >> 63 ? sine : cosine;
    to[1] = swap >> 63 ? cosine : sine;
}

SHUF_FUNCTION void shuf_box_muller_pair_f64(const shuf_box_muller_terms *terms,
                                            const shuf_box_muller_wide *w, double z[2])
{
    const double radius = shuf_box_muller_radius_f64(terms, w->radius);
    shuf_box_muller_angle_f64(terms, w->angle, w->radius[1], z);
    z[0] *= radius;
    z[1] *= radius;
}

SHUF_FUNCTION shuf_box_muller_wide shuf_box_muller_wide_of(const shuf_stream_draw *d)
{
    const shuf_box_muller_wide w = {
        {(uint64_t)d->word[0] << 32 | d->word[1], (uint64_t)d->early[0] << 32 | d->early[1]},
        {(uint64_t)d->word[2] << 32 | d->word[3], (uint64_t)d->early[2] << 32 | d->early[3]}};
    return w;
}

/* ---- Values ---- */

SHUF_FUNCTION double shuf_box_muller_scaled_f64(const shuf_box_muller *b, double z)
{
    return fma(z, b->std, b->mean);
}

SHUF_FUNCTION float shuf_box_muller_scaled_f32(const shuf_box_muller *b, float z)
{
    return fmaf(z, b->std_f32, b->mean_f32);
}

/* Scales z after setting its last bit. With mean 0 and deviation 1, the float is then never
 * half-way between two 16-bit numbers, so it can be rounded to 16 bits without a rule for ties. */
SHUF_FUNCTION float shuf_box_muller_scaled_odd(const shuf_box_muller *b, float z)
{
    return shuf_box_muller_scaled_f32(b, shuf__float_of_bits(shuf__float_bits(z) | 1));
}

SHUF_FUNCTION float shuf__box_muller_z_f32(const shuf_box_muller *b, uint64_t i)
{
    const shuf_stream_draw draw = shuf_stream_draw_make(&b->words, i / 4);
    const shuf_box_muller_words words = shuf_box_muller_words_of(&draw, (int)(i % 4 / 2));
    float z[2];
    shuf_box_muller_pair_f32(&words, z);
    return z[i % 2];
}

/* Value i of the stream, i < SHUF_STREAM_MAX. */
SHUF_FUNCTION double shuf_box_muller_f64(const shuf_box_muller *b, uint64_t i)
{
    const shuf_stream_draw draw = shuf_stream_draw_make(&b->words, i / 2);
    const shuf_box_muller_wide words = shuf_box_muller_wide_of(&draw);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    double z[2];
    shuf_box_muller_pair_f64(&terms, &words, z);
    return shuf_box_muller_scaled_f64(b, z[i % 2]);
}

SHUF_FUNCTION float shuf_box_muller_f32(const shuf_box_muller *b, uint64_t i)
{
    return shuf_box_muller_scaled_f32(b, shuf__box_muller_z_f32(b, i));
}

/* The float rounded to the bits of a binary16 or a bfloat16. */
SHUF_FUNCTION uint16_t shuf_box_muller_f16(const shuf_box_muller *b, uint64_t i)
{
    return shuf_f16(shuf_box_muller_scaled_odd(b, shuf__box_muller_z_f32(b, i)));
}

SHUF_FUNCTION uint16_t shuf_box_muller_bf16(const shuf_box_muller *b, uint64_t i)
{
    return shuf_bf16(shuf_box_muller_scaled_odd(b, shuf__box_muller_z_f32(b, i)));
}

#endif
