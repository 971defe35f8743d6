/* SPDX-License-Identifier: MIT
 *
 * The logarithm of shuf/box_muller.h in doubles, on vectors of 64-bit words, for the loops of Box
 * and Muller's method and of exponential streams.
 */
#ifndef SHUF__SIMD_LOG_VECTOR_H
#define SHUF__SIMD_LOG_VECTOR_H

#include "shuf/box_muller.h"
#include "simd/stream_vector.h"

static inline vector bits_of_doubles(doubles x)
{
    vector bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline doubles doubles_of_bits(vector bits)
{
    doubles x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline vector all_64(uint64_t x)
{
#ifdef __AVX512BW__
    return _mm512_set1_epi64((long long)x);
#else
    return _mm256_set1_epi64x((long long)x);
#endif
}

/* `yes` in the lanes where the top bit of `by` is set, else `no`. */
static inline doubles chosen_64(vector by, doubles yes, doubles no)
{
#ifdef __AVX512BW__
    return _mm512_mask_blend_pd(_mm512_movepi64_mask(by), no, yes);
#else
    return _mm256_blendv_pd(no, yes, doubles_of_bits(by));
#endif
}

/* Converts integers below 2^63 to doubles, rounded. */
static inline doubles doubles_of_wide(vector x)
{
#ifdef __AVX512BW__
    return _mm512_cvtepi64_pd(x);
#else
    const vector two_84 = all_64(0x4530000000000000), two_52 = all_64(0x4330000000000000);
    const vector high = VI(or)(V(srli_epi64)(x, 32), two_84);
    const vector low = _mm256_blend_epi32(two_52, x, 0x55);
    return V(add_pd)(V(sub_pd)(doubles_of_bits(high), V(set1_pd)(0x1p84 + 0x1p52)),
                     doubles_of_bits(low));
#endif
}

/* The 64-bit words high << 32 | low, for the lower (0) or upper (1) half of the lanes. */
static inline vector joined(vector high, vector low, int half)
{
#ifdef __AVX512BW__
    const __m256i h = half ? _mm512_extracti64x4_epi64(high, 1) : _mm512_castsi512_si256(high);
    const __m256i l = half ? _mm512_extracti64x4_epi64(low, 1) : _mm512_castsi512_si256(low);
#else
    const __m128i h = half ? _mm256_extracti128_si256(high, 1) : _mm256_castsi256_si128(high);
    const __m128i l = half ? _mm256_extracti128_si256(low, 1) : _mm256_castsi256_si128(low);
#endif
    return VI(or)(V(slli_epi64)(V(cvtepu32_epi64)(h), 32), V(cvtepu32_epi64)(l));
}

static const uint64_t sign_64 = UINT64_C(1) << 63;

static inline doubles log_64(doubles a)
{
    static const double c[] = {SHUF_BOX_MULLER_LOG_F64};
    const doubles b = V(mul_pd)(a, a);
    doubles odd = V(set1_pd)(c[21]), even = V(set1_pd)(c[20]);
    for (int i = 19; i > 1; i -= 2) {
        odd = V(fmadd_pd)(b, odd, V(set1_pd)(c[i]));
        even = V(fmadd_pd)(b, even, V(set1_pd)(c[i - 1]));
    }
    odd = V(fmadd_pd)(b, odd, V(set1_pd)(c[1]));
    return V(fmadd_pd)(a, V(fmadd_pd)(a, even, odd), V(set1_pd)(c[0]));
}

/* Does the same as shuf_box_muller_log_f64(): -2 ln u. */
static inline doubles square_64(vector high, vector low)
{
    const vector rest = all_64(~sign_64), two_52 = all_64(0x4330000000000000);
    const doubles h = doubles_of_wide(VI(and)(high, rest));
    const doubles l = doubles_of_wide(VI(or)(VI(and)(low, rest), all_64(1)));
    const doubles x = V(fmadd_pd)(l, V(set1_pd)(0x1p-63), h);
    const vector octaves = V(sub_epi64)(all_64(1086), V(srli_epi64)(bits_of_doubles(x), 52));
    const vector scale = V(slli_epi64)(V(add_epi64)(octaves, all_64(959)), 52);
    const doubles k =
        chosen_64(high, V(set1_pd)(0.0),
                  V(sub_pd)(doubles_of_bits(VI(or)(octaves, two_52)), V(set1_pd)(0x1p52)));
    const doubles near_1 = V(mul_pd)(x, V(set1_pd)(0x1p-64));
    const doubles a =
        chosen_64(high, near_1, V(fnmadd_pd)(x, doubles_of_bits(scale), V(set1_pd)(1.0)));
    return V(fmadd_pd)(a, log_64(a), V(mul_pd)(k, V(set1_pd)(SHUF_BOX_MULLER_OCTAVE_F64)));
}

#endif
