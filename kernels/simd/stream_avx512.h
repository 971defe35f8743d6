/* SPDX-License-Identifier: MIT
 *
 * The operations of stream_vector.h for AVX-512.
 */
#ifndef SHUF__SIMD_STREAM_AVX512_H
#define SHUF__SIMD_STREAM_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { LANES = 16 };
typedef __m512i vector;
typedef __m512 floats;
typedef __m512d doubles;
#define V(name) _mm512_##name
#define VI(name) _mm512_##name##_si512

/* The products x * m. Returns the low halves and sets *hi to the high halves. m must be the same in
 * all lanes. */
static inline vector product(vector x, vector m, vector *hi)
{
    const __m512i even = _mm512_mul_epu32(x, m),
                  odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), m);
    *hi = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* x * 2^-19, of signed words. */
static inline floats in_units(vector x)
{
    return _mm512_mul_ps(_mm512_cvtepi32_ps(x), _mm512_set1_ps(0x1p-19f));
}

/* The bits of x where the mask has ones, else those of y, which has none there. */
static inline vector selected(vector mask, vector x, vector y)
{
    return _mm512_or_si512(_mm512_and_si512(x, mask), y);
}

static inline vector gathered(const int32_t *table, vector index)
{
    return _mm512_i32gather_epi32(index, table, 4);
}

/* Converts half of the lanes to doubles: the lower half (0) or the upper half (1). */
static inline doubles doubles_of(vector x, int half)
{
    return _mm512_cvtepi32_pd(half ? _mm512_extracti64x4_epi64(x, 1) : _mm512_castsi512_si256(x));
}

static inline doubles doubles_of_unsigned(vector x, int half)
{
    return _mm512_cvtepu32_pd(half ? _mm512_extracti64x4_epi64(x, 1) : _mm512_castsi512_si256(x));
}

/* -x in the lanes where the sign bit of `by` is set, else x. */
static inline doubles negated_64(doubles x, vector by, int half)
{
    const __m512i sign = _mm512_slli_epi64(
        _mm512_cvtepu32_epi64(_mm256_srli_epi32(
            half ? _mm512_extracti64x4_epi64(by, 1) : _mm512_castsi512_si256(by), 31)),
        63);
    return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(x), sign));
}

static inline floats negated_32(floats x, vector by)
{
    const vector sign = _mm512_and_si512(by, _mm512_set1_epi32((int)0x80000000));
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), sign));
}

/* A bit for each of some lanes, and the first of them, if there is one. */
typedef unsigned lane_bits;

static inline int first_lane(lane_bits lanes)
{
    return __builtin_ctz(lanes);
}

/* The lanes with a magnitude of at most `limit`. */
static inline lane_bits small_lanes(floats x, float limit)
{
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(limit), _CMP_LE_OQ);
}

/* Stores the lanes of a and b in turn: a0 b0 a1 b1 ... */
static inline void store_pairs_64(double *out, doubles a, doubles b)
{
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_pd(out, _mm512_permutex2var_pd(a, low, b));
    _mm512_storeu_pd(out + 8, _mm512_permutex2var_pd(a, high, b));
}

static inline void store_pairs_32(float *out, floats a, floats b)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                  high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                           31);
    _mm512_storeu_ps(out, _mm512_permutex2var_ps(a, low, b));
    _mm512_storeu_ps(out + 16, _mm512_permutex2var_ps(a, high, b));
}

static inline floats floats_of_doubles(doubles low, doubles high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}

static inline bool is_zero(vector x)
{
    return _mm512_test_epi32_mask(x, x) == 0;
}

/* Rounds to binary16, into the lower half of each lane. */
static inline vector halves_of(floats x)
{
    return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

/* Stores words 0 to 3 of each lane, one lane after the other. */
static inline void store_fours(uint32_t *out, const vector w[4])
{
    const __m512i a = _mm512_unpacklo_epi32(w[0], w[1]), b = _mm512_unpacklo_epi32(w[2], w[3]),
                  c = _mm512_unpackhi_epi32(w[0], w[1]), d = _mm512_unpackhi_epi32(w[2], w[3]);
    const __m512i four[4] = {_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b),
                             _mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d)};
    for (int i = 0; i < 4; i++) { /* four[i] has lanes i, i + 4, i + 8 and i + 12 */
        _mm_storeu_si128((__m128i *)(out + 4 * i), _mm512_castsi512_si128(four[i]));
        _mm_storeu_si128((__m128i *)(out + 4 * i + 16), _mm512_extracti32x4_epi32(four[i], 1));
        _mm_storeu_si128((__m128i *)(out + 4 * i + 32), _mm512_extracti32x4_epi32(four[i], 2));
        _mm_storeu_si128((__m128i *)(out + 4 * i + 48), _mm512_extracti32x4_epi32(four[i], 3));
    }
}

static inline vector all_64(uint64_t x)
{
    return _mm512_set1_epi64((long long)x);
}

/* `yes` in the lanes where the top bit of `by` is set, else `no`. */
static inline floats chosen_32(vector by, floats yes, floats no)
{
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(by), no, yes);
}

static inline doubles chosen_64(vector by, doubles yes, doubles no)
{
    return _mm512_mask_blend_pd(_mm512_movepi64_mask(by), no, yes);
}

/* Converts integers below 2^63 to doubles, rounded. */
static inline doubles doubles_of_wide(vector x)
{
    return _mm512_cvtepi64_pd(x);
}

/* The 64-bit words high << 32 | low, for the lower (0) or upper (1) half of the lanes. */
static inline vector joined(vector high, vector low, int half)
{
    const __m256i h = half ? _mm512_extracti64x4_epi64(high, 1) : _mm512_castsi512_si256(high);
    const __m256i l = half ? _mm512_extracti64x4_epi64(low, 1) : _mm512_castsi512_si256(low);
    return _mm512_or_si512(_mm512_slli_epi64(_mm512_cvtepu32_epi64(h), 32),
                           _mm512_cvtepu32_epi64(l));
}

#endif
