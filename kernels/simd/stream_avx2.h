/* SPDX-License-Identifier: MIT
 *
 * The operations of stream_vector.h for AVX2. stream_avx512.h explains them.
 */
#ifndef SHUF__SIMD_STREAM_AVX2_H
#define SHUF__SIMD_STREAM_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { LANES = 8 };
typedef __m256i vector;
typedef __m256 floats;
typedef __m256d doubles;
#define V(name) _mm256_##name
#define VI(name) _mm256_##name##_si256

static inline vector product(vector x, vector m, vector *hi)
{
    const __m256i even = _mm256_mul_epu32(x, m),
                  odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
    *hi = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline floats in_units(vector x)
{
    return _mm256_mul_ps(_mm256_cvtepi32_ps(x), _mm256_set1_ps(0x1p-19f));
}

static inline vector selected(vector mask, vector x, vector y)
{
    return _mm256_or_si256(_mm256_and_si256(x, mask), y);
}

static inline vector gathered(const int32_t *table, vector index)
{
    return _mm256_i32gather_epi32(table, index, 4);
}

static inline doubles doubles_of(vector x, int half)
{
    return _mm256_cvtepi32_pd(half ? _mm256_extracti128_si256(x, 1) : _mm256_castsi256_si128(x));
}

/* Converts unsigned words to doubles: puts each word into the low bits of the double 2^52, and
 * subtracts 2^52. */
static inline doubles doubles_of_unsigned(vector x, int half)
{
    const __m256i wide =
        _mm256_cvtepu32_epi64(half ? _mm256_extracti128_si256(x, 1) : _mm256_castsi256_si128(x));
    const __m256d base = _mm256_set1_pd(0x1p52);
    return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(wide, _mm256_castpd_si256(base))),
                         base);
}

static inline doubles negated_64(doubles x, vector by, int half)
{
    const __m256i sign = _mm256_slli_epi64(
        _mm256_cvtepu32_epi64(_mm_srli_epi32(
            half ? _mm256_extracti128_si256(by, 1) : _mm256_castsi256_si128(by), 31)),
        63);
    return _mm256_castsi256_pd(_mm256_xor_si256(_mm256_castpd_si256(x), sign));
}

static inline floats negated_32(floats x, vector by)
{
    const vector sign = _mm256_and_si256(by, _mm256_set1_epi32((int)0x80000000));
    return _mm256_castsi256_ps(_mm256_xor_si256(_mm256_castps_si256(x), sign));
}

typedef unsigned lane_bits;

static inline int first_lane(lane_bits lanes)
{
    return __builtin_ctz(lanes);
}

static inline lane_bits small_lanes(floats x, float limit)
{
    const floats magnitude = _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
    return (unsigned)_mm256_movemask_ps(
        _mm256_cmp_ps(magnitude, _mm256_set1_ps(limit), _CMP_LE_OQ));
}

static inline void store_pairs_64(double *out, doubles a, doubles b)
{
    const __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
    _mm256_storeu_pd(out, _mm256_permute2f128_pd(even, odd, 0x20));
    _mm256_storeu_pd(out + 4, _mm256_permute2f128_pd(even, odd, 0x31));
}

static inline void store_pairs_32(float *out, floats a, floats b)
{
    const __m256 even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(out, _mm256_permute2f128_ps(even, odd, 0x20));
    _mm256_storeu_ps(out + 8, _mm256_permute2f128_ps(even, odd, 0x31));
}

static inline floats floats_of_doubles(doubles low, doubles high)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

static inline bool is_zero(vector x)
{
    return _mm256_testz_si256(x, x);
}

static inline vector halves_of(floats x)
{
    return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

static inline void store_fours(uint32_t *out, const vector w[4])
{
    const __m256i a = _mm256_unpacklo_epi32(w[0], w[1]), b = _mm256_unpacklo_epi32(w[2], w[3]),
                  c = _mm256_unpackhi_epi32(w[0], w[1]), d = _mm256_unpackhi_epi32(w[2], w[3]);
    const __m256i four[4] = {_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b),
                             _mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d)};
    for (int i = 0; i < 4; i++) { /* four[i] has lanes i and i + 4 */
        _mm_storeu_si128((__m128i *)(out + 4 * i), _mm256_castsi256_si128(four[i]));
        _mm_storeu_si128((__m128i *)(out + 4 * i + 16), _mm256_extracti128_si256(four[i], 1));
    }
}

static inline vector all_64(uint64_t x)
{
    return _mm256_set1_epi64x((long long)x);
}

static inline floats chosen_32(vector by, floats yes, floats no)
{
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(by));
}

static inline doubles chosen_64(vector by, doubles yes, doubles no)
{
    return _mm256_blendv_pd(no, yes, _mm256_castsi256_pd(by));
}

/* Puts the halves of a word into the low bits of the doubles 2^84 and 2^52, and adds these. */
static inline doubles doubles_of_wide(vector x)
{
    const vector two_84 = all_64(0x4530000000000000), two_52 = all_64(0x4330000000000000);
    const vector high = _mm256_or_si256(_mm256_srli_epi64(x, 32), two_84);
    const vector low = _mm256_blend_epi32(two_52, x, 0x55);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x1p84 + 0x1p52)),
                         _mm256_castsi256_pd(low));
}

static inline vector joined(vector high, vector low, int half)
{
    const __m128i h = half ? _mm256_extracti128_si256(high, 1) : _mm256_castsi256_si128(high);
    const __m128i l = half ? _mm256_extracti128_si256(low, 1) : _mm256_castsi256_si128(low);
    return _mm256_or_si256(_mm256_slli_epi64(_mm256_cvtepu32_epi64(h), 32),
                           _mm256_cvtepu32_epi64(l));
}

#endif
