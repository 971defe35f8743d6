/* SPDX-License-Identifier: MIT
 *
 * The operations of the streams' loops on vectors of 32-bit words, for AVX2 and AVX-512, the
 * random words of streams, and a logarithm. ops_stream.c, ops_box_muller.c, ops_exponential.c and
 * ops_bernoulli.c have the loops. Each lane belongs to one block of Gaussian values, or to one
 * draw. In a Gaussian stream the blocks take turns in pairs of values, so a store interleaves the
 * lanes of two vectors.
 */
#ifndef SHUF__SIMD_STREAM_VECTOR_H
#define SHUF__SIMD_STREAM_VECTOR_H

#include "shuf/box_muller.h"
#include "shuf/stream.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX512BW__

enum { LANES = 16 };
typedef __m512i vector;
typedef __m512 floats;
typedef __m512d doubles;
#define V(name) _mm512_##name
#define VI(name) _mm512_##name##_si512

static inline vector odd_of(vector even, vector odd)
{
    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
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

/* A bit for each lane with a magnitude of at most `limit`. */
static inline unsigned small_lanes(floats x, float limit)
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

#else

enum { LANES = 8 };
typedef __m256i vector;
typedef __m256 floats;
typedef __m256d doubles;
#define V(name) _mm256_##name
#define VI(name) _mm256_##name##_si256

static inline vector odd_of(vector even, vector odd)
{
    return _mm256_blend_epi32(even, odd, 0xaa);
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

static inline unsigned small_lanes(floats x, float limit)
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

#endif

static inline vector all(uint32_t x)
{
    return V(set1_epi32)((int)x);
}

/* Lane i holds i. */
static inline vector lane_numbers(void)
{
    int32_t number[LANES];
    for (int i = 0; i < LANES; i++)
        number[i] = i;
    return VI(loadu)((const void *)number);
}

/* The products x * m. Returns the low halves and sets *hi to the high halves. m must be the same in
 * all lanes. */
static inline vector product(vector x, vector m, vector *hi)
{
    const vector even = V(mul_epu32)(x, m), odd = V(mul_epu32)(V(srli_epi64)(x, 32), m);
    *hi = odd_of(V(srli_epi64)(even, 32), odd);
    return odd_of(even, V(slli_epi64)(odd, 32));
}

static inline vector bits_of_floats(floats x)
{
    vector bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline floats floats_of_bits(vector bits)
{
    floats x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- Words ---- */

/* The state of Philox: four words in each lane, and the keys of the next round. */
struct state {
    vector c[4];
    uint32_t key[2];
};

/* The state for words 4 * index to 4 * index + 3, with index = high << 32 | low. Lanes differ only
 * in `low`. */
static inline struct state uniform_of(const shuf_stream *s, vector low, uint32_t high)
{
    return (struct state){{low, all(high), all(s->high[0]), all(s->high[1])},
                          {s->key[0], s->key[1]}};
}

/* The state of shuf_stream_draw_make() before the first round. */
static inline struct state normal_of(const shuf_stream *s, vector low, uint32_t high)
{
    return (struct state){{low, all(s->high[0]), all(high), all(s->high[1])},
                          {s->key[0], s->key[1]}};
}

static inline void rounds(struct state *s, int count)
{
    const vector m0 = all(SHUF_PHILOX4X32_M0), m1 = all(SHUF_PHILOX4X32_M1);
    for (int round = 0; round < count; round++) {
        vector left_hi, right_hi;
        const vector left = product(s->c[0], m0, &left_hi), right = product(s->c[2], m1, &right_hi);
        s->c[0] = VI(xor)(VI(xor)(right_hi, s->c[1]), all(s->key[0]));
        s->c[1] = right;
        s->c[2] = VI(xor)(VI(xor)(left_hi, s->c[3]), all(s->key[1]));
        s->c[3] = left;
        s->key[0] += SHUF_PHILOX4X32_WEYL0;
        s->key[1] += SHUF_PHILOX4X32_WEYL1;
    }
}

/* The words of LANES neighbouring draws (shuf_stream_draw_make()). */
struct draws {
    vector word[4], early[4];
};

/* Makes LANES draws, from draw number `index` on. The upper 32 bits of their numbers must be equal.
 */
static inline void make_draws(const shuf_stream *s, uint64_t index, struct draws *d)
{
    struct state state =
        normal_of(s, V(add_epi32)(lane_numbers(), all((uint32_t)index)), (uint32_t)(index >> 32));
    rounds(&state, SHUF_GAUSS_EARLY_ROUNDS);
    memcpy(d->early, state.c, sizeof state.c);
    rounds(&state, SHUF_GAUSS_ROUNDS - SHUF_GAUSS_EARLY_ROUNDS);
    memcpy(d->word, state.c, sizeof state.c);
}

/* ---- The logarithm of shuf/box_muller.h in doubles, on vectors of 64-bit words ---- */

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
