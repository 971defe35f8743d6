/* SPDX-License-Identifier: MIT
 *
 * Gaussian streams (shuf/gauss.h) on the GPU. A thread is a lane of a superblock: it
 * holds a whole block of 32 values in registers, so the transform is plain additions,
 * without exchanges between lanes, and a warp stores neighbouring pairs side by side.
 *
 * Sums are whole numbers below 2^24, so floats add them exactly, at twice the rate of
 * integers. The table lies in shared memory so that the 32 lanes of a warp read 32
 * different banks, whatever their indices: row `index` has the 16 tables over and
 * over, and lane l reads its table number (p + l) mod 16 at column p % 16 + l.
 */
#include "stream.cuh"

#include "permute.cuh"
#include "philox.cuh"
#include "shuf/gauss.h"
#include "tuning.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf
{

namespace
{

constexpr int block = SHUF_GAUSS_BLOCK, tables = 16, indices = 256;
constexpr int columns = 64; /* of a row: a power of two above 15 + 31 */
constexpr unsigned shared_bytes = indices * columns * sizeof(float);
constexpr uint32_t sign = 0x80000000;

struct Gauss {
    Words<SHUF_GAUSS_ROUNDS> words;
    double a, b, c_high, c_low, mean;
    float a_f32, b_f32, mean_f32;
    const float *table;
    uint64_t offset, count; /* of the job */

    Gauss(const shuf_gauss &g, const shuf__job &job, const float *there)
        : words(g.words), a(g.a), b(g.b), c_high(g.c_high), c_low(g.c_low), mean(g.mean),
          a_f32(g.a_f32), b_f32(g.b_f32), mean_f32(g.mean_f32), table(there), offset(job.offset),
          count(job.count)
    {
    }
};

/* ---- Tables ---- */

extern __shared__ float rows[];

__device__ __forceinline__ void fill_rows(const float *table)
{
    for (int i = threadIdx.x; i < indices * columns; i += blockDim.x)
        rows[i] = table[i / columns * tables + i % tables];
    __syncthreads();
}

/* The entry that byte number `Byte` of the word chooses, for position p. */
struct InShared {
    uint32_t lane_bytes;

    template <int Byte> __device__ __forceinline__ float at(uint32_t word, int p) const
    {
        static_assert(columns * sizeof(float) == 256, "the index is the address's second byte");
        const uint32_t row = __byte_perm(word, lane_bytes, 0x7704 | Byte << 4);
        return *reinterpret_cast<const float *>(reinterpret_cast<const char *>(rows) + row +
                                                p % tables * sizeof(float));
    }
};

/* For few values: no filling. */
struct InGlobal {
    const float *table;
    uint32_t lane;

    template <int Byte> __device__ __forceinline__ float at(uint32_t word, int p) const
    {
        return __ldg(table + (word >> 8 * Byte & 255) * tables + (p + lane) % tables);
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
    uint32_t word[block];
    float s[block], t[block];

    template <typename Table>
    __device__ __forceinline__ Block(const Gauss &g, uint64_t super, uint32_t lane,
                                     const Table &table)
    {
        const uint64_t index = super * (SHUF_GAUSS_SUPER / 4);
        const uint32_t low = static_cast<uint32_t>(index) + lane * (block / 4);
#pragma unroll
        for (int j = 0; j < block / 4; j++)
            g.words.draw(low + j, static_cast<uint32_t>(index >> 32), word + 4 * j);
#pragma unroll
        for (int p = 0; p < block; p++)
            t[p] = table.template at<1>(word[p], p);
        transform(t);
#pragma unroll
        for (int p = 0; p < block; p++)
            s[p] = table.template at<0>(word[p], p);
        transform(s);
    }
};

/* ---- Types: a value, two of them side by side, one alone ---- */

struct F64 {
    static constexpr int threads = tuning::gauss_f64_threads;
    static constexpr int blocks_per_sm = tuning::gauss_f64_blocks_per_sm;
    using Out = double;
    using Pair = double2;

    static __device__ __forceinline__ double value(const Gauss &g, const Block &b, int p)
    {
        const auto odd = static_cast<int32_t>(b.word[p] >> 15 & 0x7ffe) - 16383;
        const auto c = static_cast<double>(odd);
        const auto s = static_cast<double>(negated(b.s[p], b.word[p]));
        const auto t = static_cast<double>(negated(b.t[p], b.word[(p + 1) % block]));
        return fma(c, g.c_low, fma(s, g.a, fma(t, g.b, fma(c, g.c_high, g.mean))));
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
    static constexpr int threads = tuning::gauss_threads;
    static constexpr int blocks_per_sm = tuning::gauss_blocks_per_sm;

    static __device__ __forceinline__ float value(const Gauss &g, const Block &b, int p)
    {
        const float y = fmaf(negated(b.t[p], b.word[(p + 1) % block]), g.b_f32, g.mean_f32);
        return fmaf(negated(b.s[p], b.word[p]), g.a_f32, y);
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

/* ---- Kernels ---- */

/* Position p of this lane in its superblock, p even. */
__device__ __forceinline__ uint32_t place(int p, uint32_t lane)
{
    return p / 2 * 64 + 2 * lane;
}

/* Superblocks that lie in the job as a whole. Paired: values come to lie at even places. */
template <typename Number, bool Paired>
__global__ void __launch_bounds__(Number::threads, Number::blocks_per_sm)
    gauss_whole(__grid_constant__ const Gauss g, uint64_t first, uint64_t supers,
                typename Number::Out *out)
{
    using Pair = typename Number::Pair;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const InShared table{lane * static_cast<uint32_t>(sizeof(float))};
    fill_rows(g.table);
    for (uint64_t i = uint64_t{blockIdx.x} * (blockDim.x / 32) + warp; i < supers;
         i += uint64_t{gridDim.x} * (blockDim.x / 32)) {
        const Block b(g, first + i, lane, table);
        typename Number::Out *const to =
            out + ((first + i) * SHUF_GAUSS_SUPER - g.offset + place(0, lane));
#pragma unroll
        for (int p = 0; p < block; p += 2) {
            const auto x = Number::value(g, b, p), y = Number::value(g, b, p + 1);
            if (Paired) {
                *reinterpret_cast<Pair *>(to + p * 32) = Number::pair(x, y);
            } else {
                to[p * 32] = Number::one(x);
                to[p * 32 + 1] = Number::one(y);
            }
        }
    }
}

/* Any superblocks, a warp each, of which some values may be outside. */
template <typename Number>
__device__ __forceinline__ void draw_some(const Gauss &g, uint64_t super, uint32_t lane,
                                          typename Number::Out *out)
{
    const Block b(g, super, lane, InGlobal{g.table, lane});
    const uint64_t at = super * SHUF_GAUSS_SUPER - g.offset; /* may wrap */
#pragma unroll
    for (int p = 0; p < block; p++) {
        const uint64_t i = at + place(p & ~1, lane) + p % 2;
        if (i < g.count)
            out[i] = Number::one(Number::value(g, b, p));
    }
}

template <typename Number>
__global__ void __launch_bounds__(32) gauss_edge(__grid_constant__ const Gauss g, uint64_t first,
                                                 uint64_t step, typename Number::Out *out)
{
    draw_some<Number>(g, first + blockIdx.x * step, threadIdx.x, out);
}

template <typename Number>
__global__ void __launch_bounds__(tuning::gauss_quick_threads)
    gauss_quick(__grid_constant__ const Gauss g, uint64_t first,
                __grid_constant__ const Signal signal, typename Number::Out *out)
{
    draw_some<Number>(g, first + threadIdx.x / 32, threadIdx.x % 32, out);
    tell(signal);
}

/* ---- Launching ---- */

template <typename Number, bool Paired>
cudaError_t draw_whole(const Gauss &g, uint64_t first, uint64_t supers, int sm_count,
                       typename Number::Out *out, cudaStream_t stream)
{
    constexpr uint64_t warps = Number::threads / 32;
    const auto kernel = gauss_whole<Number, Paired>;
    const uint64_t most = uint64_t{Number::blocks_per_sm} * static_cast<unsigned>(sm_count);
    const uint64_t wanted = (supers + warps - 1) / warps;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(shared_bytes));
    if (e != cudaSuccess)
        return e;
    kernel<<<static_cast<unsigned>(wanted < most ? wanted : most), Number::threads, shared_bytes,
             stream>>>(g, first, supers, out);
    return cudaGetLastError();
}

/* The whole ones, then the first and the last. */
template <typename Number>
cudaError_t draw(const Gauss &g, int sm_count, typename Number::Out *out, cudaStream_t stream)
{
    const uint64_t end = g.offset + g.count, first = g.offset / SHUF_GAUSS_SUPER;
    const uint64_t last = (end - 1) / SHUF_GAUSS_SUPER;
    const uint64_t from = (g.offset + SHUF_GAUSS_SUPER - 1) / SHUF_GAUSS_SUPER;
    const uint64_t to = end / SHUF_GAUSS_SUPER;
    cudaError_t e = cudaSuccess;
    if (from < to)
        e = g.offset % 2 == 0
                ? draw_whole<Number, true>(g, from, to - from, sm_count, out, stream)
                : draw_whole<Number, false>(g, from, to - from, sm_count, out, stream);
    const bool before = first < from || first >= to, behind = last != first && last >= to;
    if (e != cudaSuccess || (!before && !behind))
        return e;
    gauss_edge<Number>
        <<<before && behind ? 2 : 1, 32, 0, stream>>>(g, before ? first : last, last - first, out);
    return cudaGetLastError();
}

template <typename Number>
cudaError_t start(const shuf__job &job, const float *table, int sm_count, void *out,
                  const Signal *signal, cudaStream_t stream)
{
    const Gauss g(shuf_gauss_make(job.seed, job.epoch, job.mean, job.std), job, table);
    auto *const to = static_cast<typename Number::Out *>(out);
    if (!signal)
        return draw<Number>(g, sm_count, to, stream);
    const uint64_t first = job.offset / SHUF_GAUSS_SUPER;
    const uint64_t supers = (job.offset + job.count - 1) / SHUF_GAUSS_SUPER - first + 1;
    gauss_quick<Number>
        <<<1, 32 * static_cast<unsigned>(supers), 0, stream>>>(g, first, *signal, to);
    return cudaGetLastError();
}

} // namespace

cudaError_t gauss_async(const shuf__job &job, const float *table, int sm_count, void *out,
                        const Signal *signal, cudaStream_t stream)
{
    switch (job.number) {
    case SHUF_NUMBER_F64:
        return start<F64>(job, table, sm_count, out, signal, stream);
    case SHUF_NUMBER_F32:
        return start<F32>(job, table, sm_count, out, signal, stream);
    case SHUF_NUMBER_F16:
        return start<F16>(job, table, sm_count, out, signal, stream);
    case SHUF_NUMBER_BF16:
        return start<Bf16>(job, table, sm_count, out, signal, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t gauss_load()
{
    cudaFuncAttributes a;
    cudaError_t e = cudaFuncGetAttributes(&a, gauss_quick<F64>);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, gauss_quick<F32>);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, gauss_quick<F16>);
    return e == cudaSuccess ? cudaFuncGetAttributes(&a, gauss_quick<Bf16>) : e;
}

cudaError_t gauss_table_make(float **table)
{
    float values[indices * tables];
    for (int i = 0; i < indices * tables; i++)
        values[i] = static_cast<float>(shuf_gauss_table[i / tables][i % tables]);
    cudaError_t e = cudaMalloc(table, sizeof values);
    return e == cudaSuccess ? cudaMemcpy(*table, values, sizeof values, cudaMemcpyHostToDevice) : e;
}

} // namespace shuf
