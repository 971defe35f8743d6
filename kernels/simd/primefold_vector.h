/* SPDX-License-Identifier: MIT
 *
 * The operations of `primefold`'s loops on vectors, for AVX2 and AVX-512, by intrinsics. Without
 * intrinsics gcc 12 would halve the speed: it shifts 16-bit words as 32-bit words, and multiplies
 * 32-bit words as 64-bit words. The suffixes 16 and 32 mean words of so many bits, and 50 means
 * doubles. primefold_shoup.h has the same operations on single words.
 *
 * Compared words must be below 2^15 or 2^31, because AVX2 compares signed words.
 */
#ifndef SHUF__SIMD_PRIMEFOLD_VECTOR_H
#define SHUF__SIMD_PRIMEFOLD_VECTOR_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX512BW__
#define V(name) _mm512_##name
typedef __m512i vector_16, vector_32, bits_50;
typedef __m512d vector_50;
#else
#define V(name) _mm256_##name
typedef __m256i vector_16, vector_32, bits_50;
typedef __m256d vector_50;
#endif

enum { LANES_16 = sizeof(vector_16) / 2, LANES_32 = sizeof(vector_32) / 4 };

#define ELEMENTWISE(name, intrinsic, bits)                                      \
    static inline vector_##bits name##_##bits(vector_##bits a, vector_##bits b) \
    {                                                                           \
        return V(intrinsic)(a, b);                                              \
    }
#define ELEMENTWISE_OF_3(name, intrinsic)                                    \
    static inline vector_50 name##_50(vector_50 a, vector_50 b, vector_50 c) \
    {                                                                        \
        return V(intrinsic)(a, b, c);                                        \
    }

ELEMENTWISE(add, add_epi16, 16)
ELEMENTWISE(add, add_epi32, 32)
ELEMENTWISE(add, add_pd, 50)
ELEMENTWISE(subtract, sub_epi16, 16)
ELEMENTWISE(subtract, sub_epi32, 32)
ELEMENTWISE(subtract, sub_pd, 50)
ELEMENTWISE(smaller, min_epu16, 16)
ELEMENTWISE(smaller, min_epu32, 32)
ELEMENTWISE(larger, max_epu16, 16)
ELEMENTWISE(larger, max_epu32, 32)
ELEMENTWISE(larger, max_pd, 50)
ELEMENTWISE(low_product, mullo_epi16, 16)
ELEMENTWISE(low_product, mullo_epi32, 32)
ELEMENTWISE(high_product, mulhi_epu16, 16)
ELEMENTWISE(product, mul_pd, 50)
ELEMENTWISE_OF_3(fused, fmadd_pd)       /* a b + c */
ELEMENTWISE_OF_3(fused_less, fmsub_pd)  /* a b - c */
ELEMENTWISE_OF_3(less_fused, fnmadd_pd) /* c - a b */
#undef ELEMENTWISE
#undef ELEMENTWISE_OF_3

static inline vector_16 all_16(uint16_t word)
{
    return V(set1_epi16)((short)word);
}

static inline vector_32 all_32(uint32_t word)
{
    return V(set1_epi32)((int)word);
}

static inline vector_50 all_50(double number)
{
    return V(set1_pd)(number);
}

static inline vector_16 load_16(const uint16_t *words)
{
    vector_16 x;
    memcpy(&x, words, sizeof x);
    return x;
}

static inline vector_32 load_32(const uint32_t *words)
{
    vector_32 x;
    memcpy(&x, words, sizeof x);
    return x;
}

static inline void store_32(uint32_t *out, vector_32 x)
{
    memcpy(out, &x, sizeof x);
}

/* y, as high_product_16() and high_product_32() take it. */
static inline vector_16 high_factor_16(uint16_t y)
{
    return all_16(y);
}

static inline vector_32 high_factor_32(uint32_t y)
{
    return all_32(y);
}

/* Shifts by a constant. The instruction itself contains the constant. */
static inline __attribute__((always_inline)) vector_16 right_16(vector_16 x, int by)
{
    return V(srli_epi16)(x, by);
}

static inline __attribute__((always_inline)) vector_32 right_32(vector_32 x, int by)
{
    return V(srli_epi32)(x, by);
}

static inline __attribute__((always_inline)) bits_50 right_50(bits_50 x, int by)
{
    return V(srli_epi64)(x, by);
}

#ifdef __AVX512BW__

/* ---- In the way of AVX-512 ---- */

enum { XOR_OF_3 = 0x96, OR_OF_3 = 0xfe, XOR_IF_BOTH = 0x78 }; /* truth tables for ternarylogic */

/* y is the same in all lanes. */
static inline vector_32 high_product_32(vector_32 x, vector_32 y)
{
    vector_32 odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), y);
    return _mm512_mask_shuffle_epi32(odd, 0x5555, _mm512_mul_epu32(x, y), _MM_PERM_DDBB);
}

/* A mask of the bits below the highest set bit of y. The steps set 3, 9 and 15 bits. */
static inline vector_16 below_top_16(vector_16 y)
{
    y = _mm512_ternarylogic_epi32(_mm512_srli_epi16(y, 1), _mm512_srli_epi16(y, 2),
                                  _mm512_srli_epi16(y, 3), OR_OF_3);
    y = _mm512_ternarylogic_epi32(y, _mm512_srli_epi16(y, 3), _mm512_srli_epi16(y, 6), OR_OF_3);
    return _mm512_or_si512(y, _mm512_srli_epi16(y, 6));
}

static inline vector_32 float_bits_32(vector_32 x)
{
    return _mm512_castps_si512(_mm512_cvtepi32_ps(x));
}

/* x ^ a ^ b in lanes with x < limit, else x. */
static inline vector_32 xor_below_32(vector_32 x, vector_32 a, vector_32 b, vector_32 limit)
{
    return _mm512_mask_ternarylogic_epi32(x, _mm512_cmplt_epu32_mask(x, limit), a, b, XOR_OF_3);
}

static inline bool any_from_16(vector_16 x, vector_16 limit)
{
    return _mm512_cmpge_epu16_mask(x, limit) != 0;
}

static inline bool any_from_32(vector_32 x, vector_32 limit)
{
    return _mm512_cmpge_epu32_mask(x, limit) != 0;
}

static inline bool any_from_50(vector_50 x, vector_50 limit)
{
    return _mm512_cmp_pd_mask(x, limit, _CMP_GE_OQ) != 0;
}

static inline void store_16(uint32_t *out, vector_16 x)
{
    store_32(out, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)));
    store_32(out + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1)));
}

/* A bit for each of 64 values: whether it is `limit` or more. */
static inline uint64_t which_from_32(const uint32_t values[64], uint32_t limit)
{
    uint64_t which = 0;
    for (int i = 0; i < 64; i += 16)
        which |= (uint64_t)_mm512_cmpge_epu32_mask(load_32(values + i), all_32(limit)) << i;
    return which;
}

static inline uint64_t which_from_50(const uint64_t values[64], uint64_t limit)
{
    const __m512i limits = _mm512_set1_epi64((long long)limit);
    uint64_t which = 0;
    for (int i = 0; i < 64; i += 8)
        which |= (uint64_t)_mm512_cmpge_epu64_mask(_mm512_loadu_si512(values + i), limits) << i;
    return which;
}

/* ---- Doubles with AVX-512 ---- */

static inline vector_50 rounded_50(vector_50 x)
{
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x + y in lanes with x < 0, else x. */
static inline vector_50 add_if_negative_50(vector_50 x, vector_50 y)
{
    return _mm512_mask_add_pd(x, _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_LT_OQ), x, y);
}

static inline bits_50 all_bits_50(uint64_t word)
{
    return _mm512_set1_epi64((long long)word);
}

static inline bits_50 to_bits_50(vector_50 x)
{
    return _mm512_castpd_si512(x);
}

static inline vector_50 of_bits_50(bits_50 bits)
{
    return _mm512_castsi512_pd(bits);
}

static inline bits_50 xor_50(bits_50 a, bits_50 b)
{
    return _mm512_xor_si512(a, b);
}

static inline bits_50 and_50(bits_50 a, bits_50 b)
{
    return _mm512_and_si512(a, b);
}

/* a & ~b */
static inline bits_50 and_not_50(bits_50 a, bits_50 b)
{
    return _mm512_andnot_si512(b, a);
}

/* x ^ ((a ^ b) & where) */
static inline bits_50 xor_where_50(bits_50 x, bits_50 a, bits_50 b, bits_50 where)
{
    return _mm512_ternarylogic_epi32(x, _mm512_xor_si512(a, b), where, XOR_IF_BOTH);
}

/* bits ^ a ^ b in lanes with x < limit, else `bits`. */
static inline bits_50 xor_where_below_50(bits_50 bits, bits_50 a, bits_50 b, vector_50 x,
                                         vector_50 limit)
{
    return _mm512_mask_ternarylogic_epi64(bits, _mm512_cmp_pd_mask(x, limit, _CMP_LT_OQ), a, b,
                                          XOR_OF_3);
}

#else

/* ---- In the way of AVX2: a comparison sets all bits of a lane, or none ---- */

/* y is the same in all lanes. */
static inline vector_32 high_product_32(vector_32 x, vector_32 y)
{
    vector_32 odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), y);
    return _mm256_blend_epi32(_mm256_srli_epi64(_mm256_mul_epu32(x, y), 32), odd, 0xaa);
}

/* A mask of the bits below the highest set bit of y. */
static inline vector_16 below_top_16(vector_16 y)
{
    y = _mm256_srli_epi16(y, 1);
    y = _mm256_or_si256(y, _mm256_srli_epi16(y, 1));
    y = _mm256_or_si256(y, _mm256_srli_epi16(y, 2));
    y = _mm256_or_si256(y, _mm256_srli_epi16(y, 4));
    return _mm256_or_si256(y, _mm256_srli_epi16(y, 8));
}

static inline vector_32 float_bits_32(vector_32 x)
{
    return _mm256_castps_si256(_mm256_cvtepi32_ps(x));
}

/* x ^ a ^ b in lanes with x < limit, else x. */
static inline vector_32 xor_below_32(vector_32 x, vector_32 a, vector_32 b, vector_32 limit)
{
    return _mm256_xor_si256(x,
                            _mm256_and_si256(_mm256_xor_si256(a, b), _mm256_cmpgt_epi32(limit, x)));
}

static inline bool any_from_16(vector_16 x, vector_16 limit)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, x)) != -1;
}

static inline bool any_from_32(vector_32 x, vector_32 limit)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(limit, x)) != -1;
}

static inline bool any_from_50(vector_50 x, vector_50 limit)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(x, limit, _CMP_GE_OQ)) != 0;
}

static inline void store_16(uint32_t *out, vector_16 x)
{
    store_32(out, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)));
    store_32(out + 8, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1)));
}

/* A bit for each of 64 values: whether it is `limit` or more. */
static inline uint64_t which_from_32(const uint32_t values[64], uint32_t limit)
{
    uint64_t below = 0;
    for (int i = 0; i < 64; i += 8) {
        __m256i less = _mm256_cmpgt_epi32(all_32(limit), load_32(values + i));
        below |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(less)) << i;
    }
    return ~below;
}

static inline uint64_t which_from_50(const uint64_t values[64], uint64_t limit)
{
    const __m256i limits = _mm256_set1_epi64x((long long)limit);
    uint64_t below = 0;
    for (int i = 0; i < 64; i += 4) {
        __m256i four = _mm256_loadu_si256((const __m256i *)(values + i));
        __m256d less = _mm256_castsi256_pd(_mm256_cmpgt_epi64(limits, four));
        below |= (uint64_t)(uint32_t)_mm256_movemask_pd(less) << i;
    }
    return ~below;
}

/* ---- Doubles with AVX2 ---- */

static inline vector_50 rounded_50(vector_50 x)
{
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x + y in lanes with x < 0, else x. */
static inline vector_50 add_if_negative_50(vector_50 x, vector_50 y)
{
    return _mm256_add_pd(x, _mm256_and_pd(y, _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_LT_OQ)));
}

static inline bits_50 all_bits_50(uint64_t word)
{
    return _mm256_set1_epi64x((long long)word);
}

static inline bits_50 to_bits_50(vector_50 x)
{
    return _mm256_castpd_si256(x);
}

static inline vector_50 of_bits_50(bits_50 bits)
{
    return _mm256_castsi256_pd(bits);
}

static inline bits_50 xor_50(bits_50 a, bits_50 b)
{
    return _mm256_xor_si256(a, b);
}

static inline bits_50 and_50(bits_50 a, bits_50 b)
{
    return _mm256_and_si256(a, b);
}

/* a & ~b */
static inline bits_50 and_not_50(bits_50 a, bits_50 b)
{
    return _mm256_andnot_si256(b, a);
}

/* x ^ ((a ^ b) & where) */
static inline bits_50 xor_where_50(bits_50 x, bits_50 a, bits_50 b, bits_50 where)
{
    return _mm256_xor_si256(x, _mm256_and_si256(_mm256_xor_si256(a, b), where));
}

/* bits ^ a ^ b in lanes with x < limit, else `bits`. */
static inline bits_50 xor_where_below_50(bits_50 bits, bits_50 a, bits_50 b, vector_50 x,
                                         vector_50 limit)
{
    bits_50 below = to_bits_50(_mm256_cmp_pd(x, limit, _CMP_LT_OQ));
    return _mm256_xor_si256(bits, _mm256_and_si256(_mm256_xor_si256(a, b), below));
}

#endif

/* ---- In terms of the others ---- */

static inline vector_16 xor_16(vector_16 a, vector_16 b)
{
    return xor_50(a, b);
}

static inline vector_32 xor_32(vector_32 a, vector_32 b)
{
    return xor_50(a, b);
}

static inline vector_16 and_16(vector_16 a, vector_16 b)
{
    return and_50(a, b);
}

static inline vector_32 and_32(vector_32 a, vector_32 b)
{
    return and_50(a, b);
}

static inline vector_16 and_not_16(vector_16 a, vector_16 b)
{
    return and_not_50(a, b);
}

static inline vector_32 and_not_32(vector_32 a, vector_32 b)
{
    return and_not_50(a, b);
}

static inline vector_16 xor_where_16(vector_16 x, vector_16 a, vector_16 b, vector_16 where)
{
    return xor_where_50(x, a, b, where);
}

static inline vector_32 xor_where_32(vector_32 x, vector_32 a, vector_32 b, vector_32 where)
{
    return xor_where_50(x, a, b, where);
}

/* A mask of the bits below the highest set bit of y, 0 < y < 2^24. The exponent of y as a float
 * gives the number of this bit. */
static inline vector_32 below_top_32(vector_32 y)
{
    const vector_32 number = right_32(float_bits_32(y), 23); /* 127 + the number of the bit */
    return V(srlv_epi32)(all_32(UINT32_MAX), subtract_32(all_32(127 + 32), number));
}

static inline uint64_t which_from_16(const uint32_t values[64], uint32_t limit)
{
    return which_from_32(values, limit);
}

#endif
