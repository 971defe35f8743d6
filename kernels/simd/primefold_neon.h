/* SPDX-License-Identifier: MIT
 *
 * The operations of primefold_vector.h on words of 16 and 32 bits for NEON, which all processors of
 * aarch64 have. There are none on doubles: a register holds two, so a map would take nearly as many
 * instructions for each value as one of single words of 64 bits.
 */
#ifndef SHUF__SIMD_PRIMEFOLD_NEON_H
#define SHUF__SIMD_PRIMEFOLD_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint16x8_t vector_16;
typedef uint32x4_t vector_32;

enum { LANES_16 = 8, LANES_32 = 4 };

#define ELEMENTWISE(name, operation)                            \
    static inline vector_16 name##_16(vector_16 a, vector_16 b) \
    {                                                           \
        return operation##_u16(a, b);                           \
    }                                                           \
    static inline vector_32 name##_32(vector_32 a, vector_32 b) \
    {                                                           \
        return operation##_u32(a, b);                           \
    }

ELEMENTWISE(add, vaddq)
ELEMENTWISE(subtract, vsubq)
ELEMENTWISE(smaller, vminq)
ELEMENTWISE(larger, vmaxq)
ELEMENTWISE(low_product, vmulq)
ELEMENTWISE(xor, veorq)
ELEMENTWISE(and, vandq)
ELEMENTWISE(and_not, vbicq)
#undef ELEMENTWISE

#define FOR_WORDS(bits)                                                                           \
    static inline vector_##bits all_##bits(uint##bits##_t word)                                   \
    {                                                                                             \
        return vdupq_n_u##bits(word);                                                             \
    }                                                                                             \
                                                                                                  \
    static inline vector_##bits load_##bits(const uint##bits##_t *words)                          \
    {                                                                                             \
        return vld1q_u##bits(words);                                                              \
    }                                                                                             \
                                                                                                  \
    static inline __attribute__((always_inline))                                                  \
    vector_##bits right_##bits(vector_##bits x, int by)                                           \
    {                                                                                             \
        return x >> (uint##bits##_t)by;                                                           \
    }                                                                                             \
                                                                                                  \
    /* The one instruction for a high product is of signed words, and doubles it. Its numbers are \
     * below 2^(bits - 1), so the factor is halved. */                                            \
    static inline vector_##bits high_factor_##bits(uint##bits##_t y)                              \
    {                                                                                             \
        return vdupq_n_u##bits(y >> 1);                                                           \
    }                                                                                             \
                                                                                                  \
    static inline vector_##bits high_product_##bits(vector_##bits x, vector_##bits factor)        \
    {                                                                                             \
        return vreinterpretq_u##bits##_s##bits(vqdmulhq_s##bits(                                  \
            vreinterpretq_s##bits##_u##bits(x), vreinterpretq_s##bits##_u##bits(factor)));        \
    }                                                                                             \
                                                                                                  \
    /* A mask of the bits below the highest set bit of y. */                                      \
    static inline vector_##bits below_top_##bits(vector_##bits y)                                 \
    {                                                                                             \
        const vector_##bits zeros = vclzq_u##bits(y);                                             \
        return vshlq_u##bits(vdupq_n_u##bits(UINT##bits##_MAX >> 1),                              \
                             vnegq_s##bits(vreinterpretq_s##bits##_u##bits(zeros)));              \
    }                                                                                             \
                                                                                                  \
    /* x ^ ((a ^ b) & where) */                                                                   \
    static inline vector_##bits xor_where_##bits(vector_##bits x, vector_##bits a,                \
                                                 vector_##bits b, vector_##bits where)            \
    {                                                                                             \
        return x ^ ((a ^ b) & where);                                                             \
    }                                                                                             \
                                                                                                  \
    static inline bool any_from_##bits(vector_##bits x, vector_##bits limit)                      \
    {                                                                                             \
        return vmaxvq_u##bits(vcgeq_u##bits(x, limit)) != 0;                                      \
    }

FOR_WORDS(16)
FOR_WORDS(32)
#undef FOR_WORDS

static inline void store_32(uint32_t *out, vector_32 x)
{
    vst1q_u32(out, x);
}

static inline void store_16(uint32_t *out, vector_16 x)
{
    store_32(out, vmovl_u16(vget_low_u16(x)));
    store_32(out + 4, vmovl_high_u16(x));
}

/* x ^ a ^ b in lanes with x < limit, else x. */
static inline vector_32 xor_below_32(vector_32 x, vector_32 a, vector_32 b, vector_32 limit)
{
    return x ^ ((a ^ b) & vcltq_u32(x, limit));
}

/* Bytes with the bit of their number modulo 8, for each of 16 values that is `limit` or more. */
static inline uint8x16_t bits_from(const uint32_t values[16], uint32_t limit)
{
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint16x8_t half[2];
    for (int i = 0; i < 2; i++) {
        const uint32x4_t low = vcgeq_u32(load_32(values + 8 * i), all_32(limit));
        const uint32x4_t high = vcgeq_u32(load_32(values + 8 * i + 4), all_32(limit));
        half[i] = vmovn_high_u32(vmovn_u32(low), high);
    }
    return vandq_u8(vmovn_high_u16(vmovn_u16(half[0]), half[1]), vld1q_u8(bit));
}

/* A bit for each of 64 values: whether it is `limit` or more. Three times, neighbouring bytes are
 * added. */
static inline uint64_t which_from_32(const uint32_t values[64], uint32_t limit)
{
    const uint8x16_t low = vpaddq_u8(bits_from(values, limit), bits_from(values + 16, limit));
    const uint8x16_t high = vpaddq_u8(bits_from(values + 32, limit), bits_from(values + 48, limit));
    const uint8x16_t both = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(both, both)), 0);
}

static inline uint64_t which_from_16(const uint32_t values[64], uint32_t limit)
{
    return which_from_32(values, limit);
}

#endif
