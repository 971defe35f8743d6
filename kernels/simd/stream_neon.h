/* SPDX-License-Identifier: MIT
 *
 * The operations of stream_vector.h for NEON. stream_avx512.h explains them. Casts of vectors
 * keep their bits.
 */
#ifndef SHUF__SIMD_STREAM_NEON_H
#define SHUF__SIMD_STREAM_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

enum { LANES = 4 };
typedef uint32x4_t vector;
typedef float32x4_t floats;
typedef float64x2_t doubles;
#define V(name) neon_##name
#define VI(name) neon_##name##_bits

/* ---- The operations of x86, under their names ---- */

#define UNARY(type, name, of, value) \
    static inline type V(name)(of x) \
    {                                \
        return value;                \
    }
#define BINARY(type, name, of, value)      \
    static inline type V(name)(of a, of b) \
    {                                      \
        return value;                      \
    }
#define SHIFT(name, value)                                                        \
    static inline __attribute__((always_inline)) vector V(name)(vector x, int by) \
    {                                                                             \
        return (vector)(value);                                                   \
    }
#define FUSED(name, type, value)                       \
    static inline type V(name)(type a, type b, type c) \
    {                                                  \
        return value;                                  \
    }

UNARY(vector, set1_epi32, int, vdupq_n_u32((uint32_t)x))
UNARY(floats, set1_ps, float, vdupq_n_f32(x))
UNARY(doubles, set1_pd, double, vdupq_n_f64(x))
UNARY(floats, cvtepi32_ps, vector, vcvtq_f32_s32((int32x4_t)x))
UNARY(floats, sqrt_ps, floats, vsqrtq_f32(x))
UNARY(doubles, sqrt_pd, doubles, vsqrtq_f64(x))
BINARY(vector, add_epi32, vector, vaddq_u32(a, b))
BINARY(vector, sub_epi32, vector, vsubq_u32(a, b))
BINARY(vector, add_epi64, vector, (vector)vaddq_u64((uint64x2_t)a, (uint64x2_t)b))
BINARY(vector, sub_epi64, vector, (vector)vsubq_u64((uint64x2_t)a, (uint64x2_t)b))
BINARY(vector, and_bits, vector, vandq_u32(a, b))
BINARY(vector, andnot_bits, vector, vbicq_u32(b, a)) /* ~a & b */
BINARY(vector, or_bits, vector, vorrq_u32(a, b))
BINARY(vector, xor_bits, vector, veorq_u32(a, b))
BINARY(floats, add_ps, floats, vaddq_f32(a, b))
BINARY(floats, sub_ps, floats, vsubq_f32(a, b))
BINARY(floats, mul_ps, floats, vmulq_f32(a, b))
BINARY(doubles, add_pd, doubles, vaddq_f64(a, b))
BINARY(doubles, sub_pd, doubles, vsubq_f64(a, b))
BINARY(doubles, mul_pd, doubles, vmulq_f64(a, b))
SHIFT(srli_epi32, x >> (uint32_t)by)
SHIFT(slli_epi32, x << (uint32_t)by)
SHIFT(srai_epi32, (int32x4_t)x >> by)
SHIFT(srli_epi64, (uint64x2_t)x >> (uint64_t)by)
SHIFT(slli_epi64, (uint64x2_t)x << (uint64_t)by)
FUSED(fmadd_ps, floats, vfmaq_f32(c, a, b))
FUSED(fmadd_pd, doubles, vfmaq_f64(c, a, b))
FUSED(fnmadd_pd, doubles, vfmsq_f64(c, a, b)) /* c - a b */
#undef UNARY
#undef BINARY
#undef SHIFT
#undef FUSED

static inline vector VI(loadu)(const void *from)
{
    return vld1q_u32(from);
}

static inline void VI(storeu)(void *to, vector x)
{
    vst1q_u32(to, x);
}

/* ---- In the way of NEON ---- */

static inline vector product(vector x, vector m, vector *hi)
{
    const uint32x4_t low = (uint32x4_t)vmull_u32(vget_low_u32(x), vget_low_u32(m));
    const uint32x4_t high = (uint32x4_t)vmull_high_u32(x, m);
    *hi = vuzp2q_u32(low, high);
    return vuzp1q_u32(low, high);
}

static inline floats in_units(vector x)
{
    return vcvtq_n_f32_s32((int32x4_t)x, 19);
}

static inline vector selected(vector mask, vector x, vector y)
{
    return vbslq_u32(mask, x, y);
}

/* NEON has no gathers. */
static inline vector gathered(const int32_t *table, vector index)
{
    const int32x4_t found = {table[index[0]], table[index[1]], table[index[2]], table[index[3]]};
    return (vector)found;
}

static inline doubles doubles_of(vector x, int half)
{
    const int32x4_t s = (int32x4_t)x;
    return vcvtq_f64_s64(half ? vmovl_high_s32(s) : vmovl_s32(vget_low_s32(s)));
}

static inline doubles doubles_of_unsigned(vector x, int half)
{
    return vcvtq_f64_u64(half ? vmovl_high_u32(x) : vmovl_u32(vget_low_u32(x)));
}

static inline vector all_64(uint64_t x)
{
    return (vector)vdupq_n_u64(x);
}

static inline vector joined(vector high, vector low, int half)
{
    return half ? vzip2q_u32(low, high) : vzip1q_u32(low, high);
}

static inline doubles negated_64(doubles x, vector by, int half)
{
    const vector sign = vandq_u32(joined(by, by, half), all_64(UINT64_C(1) << 63));
    return (doubles)veorq_u32((vector)x, sign);
}

static inline floats negated_32(floats x, vector by)
{
    return (floats)veorq_u32((vector)x, vandq_u32(by, vdupq_n_u32(0x80000000)));
}

/* Bit 16 * i is of lane i. */
typedef uint64_t lane_bits;

static inline lane_bits small_lanes(floats x, float limit)
{
    const uint16x4_t small = vmovn_u32(vcaleq_f32(x, vdupq_n_f32(limit)));
    return vget_lane_u64((uint64x1_t)small, 0) & UINT64_C(0x0001000100010001);
}

static inline int first_lane(lane_bits lanes)
{
    return __builtin_ctzll(lanes) / 16;
}

static inline void store_pairs_64(double *out, doubles a, doubles b)
{
    vst1q_f64(out, vzip1q_f64(a, b));
    vst1q_f64(out + 2, vzip2q_f64(a, b));
}

static inline void store_pairs_32(float *out, floats a, floats b)
{
    vst1q_f32(out, vzip1q_f32(a, b));
    vst1q_f32(out + 4, vzip2q_f32(a, b));
}

static inline void store_fours(uint32_t *out, const vector w[4])
{
    const uint32x4x4_t four = {{w[0], w[1], w[2], w[3]}};
    vst4q_u32(out, four);
}

static inline floats floats_of_doubles(doubles low, doubles high)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}

static inline bool is_zero(vector x)
{
    return vmaxvq_u32(x) == 0;
}

static inline vector halves_of(floats x)
{
    return vmovl_u16((uint16x4_t)vcvt_f16_f32(x));
}

static inline floats chosen_32(vector by, floats yes, floats no)
{
    return vbslq_f32((vector)((int32x4_t)by >> 31), yes, no);
}

static inline doubles chosen_64(vector by, doubles yes, doubles no)
{
    return vbslq_f64((uint64x2_t)((int64x2_t)by >> 63), yes, no);
}

static inline doubles doubles_of_wide(vector x)
{
    return vcvtq_f64_u64((uint64x2_t)x);
}

#endif
