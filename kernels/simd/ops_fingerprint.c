/* SPDX-License-Identifier: MIT
 *
 * Sums of the terms of a fingerprint (shuf/fingerprint.h). Compiled once for each instruction set.
 * A term multiplies halves of 64 bits, for which vectors have an instruction; from plain C the
 * compiler makes products of 64 bits.
 */
#include "shuf/fingerprint.h"
#include "simd/simd_ops.h"

#ifdef __AVX2__

#include <immintrin.h>

#ifdef __AVX512BW__
enum { LANES = 8 };
typedef __m512i vector;
#define V(name) _mm512_##name
#define VI(name) _mm512_##name##_si512
#define EACH(x) _mm512_set1_epi64((long long)(x))
#define LOAD_HALF(from) _mm512_cvtepu16_epi64(_mm_loadu_si128((const void *)(from)))
#define LOAD_NARROW(from) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)(from)))
#else
enum { LANES = 4 };
typedef __m256i vector;
#define V(name) _mm256_##name
#define VI(name) _mm256_##name##_si256
#define EACH(x) _mm256_set1_epi64x((long long)(x))
#define LOAD_HALF(from) _mm256_cvtepu16_epi64(_mm_loadl_epi64((const void *)(from)))
#define LOAD_NARROW(from) _mm256_cvtepu32_epi64(_mm_loadu_si128((const void *)(from)))
#endif
#define LOAD_WIDE(from) VI(loadu)((const void *)(from))

static inline vector terms(vector z)
{
    const vector w = V(mul_epu32)(z, V(srli_epi64)(z, 32)), x = VI(xor)(w, z);
    const vector product =
        V(mul_epu32)(VI(xor)(x, V(srli_epi64)(w, 32)), VI(or)(V(srli_epi64)(x, 32), EACH(1)));
    return V(add_epi64)(product, z);
}

/* Sets `sum` to the sum of the terms of whole vectors, and `i` to the number of their values. */
#define SUM_VECTORS(LOAD)                                                      \
    uint64_t lane[LANES];                                                      \
    for (unsigned c = 0; c < LANES; c++)                                       \
        lane[c] = (first + c + 1) * SHUF_FINGERPRINT_STEP;                     \
    vector place = LOAD_WIDE(lane), all = VI(setzero)();                       \
    for (; count - i >= LANES; i += LANES) {                                   \
        all = V(add_epi64)(all, terms(V(add_epi64)(place, LOAD(values + i)))); \
        place = V(add_epi64)(place, EACH(LANES * SHUF_FINGERPRINT_STEP));      \
    }                                                                          \
    VI(storeu)((void *)lane, all);                                             \
    for (unsigned c = 0; c < LANES; c++)                                       \
        sum += lane[c];

#elif defined(SHUF__SIMD_VECTORS)

#include <arm_neon.h>

enum { LANES = 4 };

/* A vector of 4 values: the lower and the upper two, widened. */
typedef uint64x2x2_t vector;

#define LOAD_NARROW(from) widened(vld1q_u32(from))
#define LOAD_HALF(from) widened(vmovl_u16(vld1_u16(from)))
#define LOAD_WIDE(from) vld1q_u64_x2(from)

static inline vector widened(uint32x4_t x)
{
    return (vector){{vmovl_u32(vget_low_u32(x)), vmovl_high_u32(x)}};
}

/* Adds the terms of the numbers z to `sum`. */
static inline void add_terms(vector *sum, vector z)
{
    const uint32x4_t a = (uint32x4_t)z.val[0], b = (uint32x4_t)z.val[1];
    const uint32x4_t low = vuzp1q_u32(a, b), high = vuzp2q_u32(a, b);
    const uint32x4_t c = (uint32x4_t)vmull_u32(vget_low_u32(low), vget_low_u32(high));
    const uint32x4_t d = (uint32x4_t)vmull_high_u32(low, high);
    const uint32x4_t w_low = vuzp1q_u32(c, d), w_high = vuzp2q_u32(c, d);
    const uint32x4_t x = w_low ^ low ^ w_high, y = (w_high ^ high) | vdupq_n_u32(1);
    sum->val[0] = vmlal_u32(sum->val[0] + z.val[0], vget_low_u32(x), vget_low_u32(y));
    sum->val[1] = vmlal_high_u32(sum->val[1] + z.val[1], x, y);
}

#define SUM_VECTORS(LOAD)                                                                      \
    const uint64x2_t step = vdupq_n_u64(LANES * SHUF_FINGERPRINT_STEP);                        \
    uint64_t lane[LANES];                                                                      \
    for (unsigned c = 0; c < LANES; c++)                                                       \
        lane[c] = (first + c + 1) * SHUF_FINGERPRINT_STEP;                                     \
    vector place = LOAD_WIDE(lane), all = {{vdupq_n_u64(0), vdupq_n_u64(0)}};                  \
    for (; count - i >= LANES; i += LANES) {                                                   \
        const vector value = LOAD(values + i);                                                 \
        add_terms(&all, (vector){{place.val[0] + value.val[0], place.val[1] + value.val[1]}}); \
        place.val[0] += step;                                                                  \
        place.val[1] += step;                                                                  \
    }                                                                                          \
    sum = vaddvq_u64(all.val[0] + all.val[1]);

#else
#define SUM_VECTORS(LOAD)
#endif

#define FINGERPRINT(name, LOAD, Value)                                                    \
    uint64_t SHUF__SIMD_NAME(shuf__fingerprint_##name)(const Value *values, size_t count, \
                                                       uint64_t first)                    \
    {                                                                                     \
        uint64_t sum = 0;                                                                 \
        size_t i = 0;                                                                     \
        SUM_VECTORS(LOAD)                                                                 \
        for (; i < count; i++)                                                            \
            sum += shuf_fingerprint_term(first + i, values[i]);                           \
        return sum;                                                                       \
    }

FINGERPRINT(half, LOAD_HALF, uint16_t)
FINGERPRINT(narrow, LOAD_NARROW, uint32_t)
FINGERPRINT(wide, LOAD_WIDE, uint64_t)
