/* SPDX-License-Identifier: MIT
 *
 * A Gaussian stream's block of 32 values in a thread's registers, and the types of a
 * value: what kernels that make them are built of.
 *
 * Sums are whole numbers below 2^24, so floats add them exactly, at twice the rate of
 * integers. The table lies in shared memory so that the 32 lanes of a warp read 32
 * different banks, whatever their indices: row `index` has the 16 tables over and
 * over, and lane l reads its tables number (p + l) and (p + l + 8) mod 16 at columns
 * p % 16 + l and 8 further on.
 */
#ifndef SHUF__CUDA_GAUSS_CUH
#define SHUF__CUDA_GAUSS_CUH

#include "backend.h"
#include "philox.cuh"
#include "shuf/gauss.h"
#include "tuning.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf::gauss
{

constexpr int block = SHUF_GAUSS_BLOCK, tables = 16, indices = 256;
constexpr int columns = 64; /* of a row: a power of two above 15 + 31 + 8 */
constexpr unsigned shared_bytes = indices * columns * sizeof(float);
constexpr uint32_t sign = 0x80000000;

struct Gauss {
    Words<SHUF_GAUSS_OLD_ROUNDS> words;
    double a, c, mean;
    float a_f32, c_f32, mean_f32;
    const float *table;
    uint64_t offset, count; /* of the job */

    Gauss(const shuf_gauss &g, const shuf__job &job, const float *there)
        : words(g.words), a(g.a), c(g.c), mean(g.mean), a_f32(g.a_f32), c_f32(g.c_f32),
          mean_f32(g.mean_f32), table(there), offset(job.offset), count(job.count)
    {
    }
};

/* ---- Tables ---- */

extern __shared__ __align__(16) float rows[];

__device__ __forceinline__ void fill_rows(const float *table)
{
    constexpr int four = 4, times = columns / tables;
    const auto *const from = reinterpret_cast<const float4 *>(table);
    for (int i = threadIdx.x; i < indices * tables / four; i += blockDim.x) {
        const float4 entries = __ldg(from + i);
        const int row = i / (tables / four), column = i % (tables / four);
#pragma unroll
        for (int k = 0; k < times; k++)
            reinterpret_cast<float4 *>(rows)[(row * times + k) * (tables / four) + column] =
                entries;
    }
    __syncthreads();
}

/* The entry that byte number `Byte` of the word chooses, for position p: of the second byte in the
 * table that goes with the first one's. */
struct InShared {
    uint32_t lane_bytes;

    template <int Byte> __device__ __forceinline__ float at(uint32_t word, int p) const
    {
        static_assert(columns * sizeof(float) == 256, "the index is the address's second byte");
        const uint32_t row = __byte_perm(word, lane_bytes, 0x7704 | Byte << 4);
        return *reinterpret_cast<const float *>(reinterpret_cast<const char *>(rows) + row +
                                                (p % tables + 8 * Byte) * sizeof(float));
    }
};

/* For few values: no filling. */
struct InGlobal {
    const float *table;
    uint32_t lane;

    template <int Byte> __device__ __forceinline__ float at(uint32_t word, int p) const
    {
        return __ldg(table + (word >> 8 * Byte & 255) * tables + (p + lane + 8 * Byte) % tables);
    }
};

/* ---- A block of values ---- */

__device__ __forceinline__ void transform(float (&x)[block])
{
#pragma unroll
    for (int step = 1; step < block; step *= 2)
#pragma unroll
        for (int p = 0; p < block; p++)
            if (!(p & step)) {
                const float sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

__device__ __forceinline__ float negated(float x, uint32_t by)
{
    return __uint_as_float(__float_as_uint(x) ^ (by & sign));
}

struct Block {
    uint32_t low, high; /* the index of its words' first four, in halves */
    uint32_t word[block];
    float s[block]; /* signs included */

    template <typename Table>
    __device__ __forceinline__ Block(const Gauss &g, uint64_t super, uint32_t lane,
                                     const Table &table)
    {
        const uint64_t index = super * (SHUF_GAUSS_SUPER / 2);
        low = static_cast<uint32_t>(index) + lane * (block / 2);
        high = static_cast<uint32_t>(index >> 32);
#pragma unroll
        for (int j = 0; j < block / 4; j++)
            g.words.draw(low + j, high, word + 4 * j);
#pragma unroll
        for (int p = 0; p < block; p++)
            s[p] = table.template at<0>(word[p], p) + table.template at<1>(word[p], p);
        transform(s);
#pragma unroll
        for (int p = 0; p < block; p++)
            s[p] = negated(s[p], word[p]);
    }

    /* The further words of values p to p + 3, p a multiple of 4. */
    __device__ __forceinline__ void more(const Gauss &g, int p, uint32_t (&four)[4]) const
    {
        g.words.draw(low + (block + p) / 4, high, four);
    }
};

/* ---- Types: four values, two of them side by side, one alone ---- */

struct F64 {
    using Value = double;
    using Out = double;
    using Pair = double2;

    static __device__ __forceinline__ void values(const Gauss &g, const Block &b, int p,
                                                  double (&y)[4])
    {
        uint32_t more[4];
        b.more(g, p, more);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const double h = static_cast<double>(static_cast<int32_t>(more[i])) + 0.5;
            y[i] = fma(h, g.c, fma(static_cast<double>(b.s[p + i]), g.a, g.mean));
        }
    }
    static __device__ __forceinline__ double2 pair(double a, double b)
    {
        return make_double2(a, b);
    }
    static __device__ __forceinline__ double one(double a)
    {
        return a;
    }
};

struct OfF32 {
    using Value = float;

    static __device__ __forceinline__ void values(const Gauss &g, const Block &b, int p,
                                                  float (&y)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const auto h =
                static_cast<int32_t>(__byte_perm(b.word[(p + i) ^ 1], b.word[p + i], 0x7632));
            y[i] = fmaf(static_cast<float>(h), g.c_f32, fmaf(b.s[p + i], g.a_f32, g.mean_f32));
        }
    }
};

struct F32 : OfF32 {
    using Out = float;
    using Pair = float2;

    static __device__ __forceinline__ float2 pair(float a, float b)
    {
        return make_float2(a, b);
    }
    static __device__ __forceinline__ float one(float a)
    {
        return a;
    }
};

struct F16 : OfF32 {
    using Out = __half;
    using Pair = __half2;

    static __device__ __forceinline__ __half2 pair(float a, float b)
    {
        return __floats2half2_rn(a, b);
    }
    static __device__ __forceinline__ __half one(float a)
    {
        return __float2half_rn(a);
    }
};

struct Bf16 : OfF32 {
    using Out = __nv_bfloat16;
    using Pair = __nv_bfloat162;

    static __device__ __forceinline__ __nv_bfloat162 pair(float a, float b)
    {
        return __floats2bfloat162_rn(a, b);
    }
    static __device__ __forceinline__ __nv_bfloat16 one(float a)
    {
        return __float2bfloat16_rn(a);
    }
};

/* Position p of this lane in its superblock, p even. */
__device__ __forceinline__ uint32_t place(int p, uint32_t lane)
{
    return p / 2 * 64 + 2 * lane;
}

} // namespace shuf::gauss

#endif
