/* SPDX-License-Identifier: MIT
 *
 * The operations of `primefold`'s loops on vectors, for AVX2 and AVX-512, by intrinsics. Without
 * intrinsics gcc 12 would halve the speed: it shifts 16-bit words as 32-bit words, and multiplies
 * 32-bit words as 64-bit words. The suffixes 16 and 32 mean words of so many bits, and 50 means
 * doubles. primefold_scalar.h has the same operations on single words.
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
#include "primefold_avx512.h"
#else
#include "primefold_avx2.h"
#endif

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
