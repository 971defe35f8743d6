/* SPDX-License-Identifier: MIT
 *
 * See stream_kernels.cuh.
 */
#include "stream_kernels.cuh"

#include "cuda/gauss.cuh"

#include <cub/block/block_reduce.cuh>

#include <cstring>

namespace bench
{

namespace
{

using namespace shuf::gauss;
namespace tuning = shuf::tuning;

/* ---- Not stored ---- */

/* Sums four values of a thread instead of storing them. */
template <typename Number> struct Use {
    using Sum = typename Number::Value;
    static __device__ __forceinline__ void add(Sum &sum, const Sum (&y)[4])
    {
        sum += (y[0] + y[1]) + (y[2] + y[3]);
    }
};

/* A sum would need conversions, so these are rounded in pairs and combined by their bits. */
template <> struct Use<Bf16> {
    using Sum = uint32_t;
    static __device__ __forceinline__ uint32_t bits(float a, float b)
    {
        const Bf16::Pair pair = Bf16::pair(a, b);
        uint32_t word;
        memcpy(&word, &pair, sizeof word);
        return word;
    }
    static __device__ __forceinline__ void add(Sum &sum, const float (&y)[4])
    {
        sum ^= bits(y[0], y[1]) ^ bits(y[2], y[3]);
    }
};

/* gauss_whole with a sum instead of stores. The sum needs one more register. */
constexpr int not_stored_threads = 256, not_stored_blocks_per_sm = 2;

template <typename Number>
__global__ void __launch_bounds__(not_stored_threads, not_stored_blocks_per_sm)
    gauss_not_stored(__grid_constant__ const Gauss g, uint64_t first, uint64_t supers,
                     typename Use<Number>::Sum *sums)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const InShared table{lane * static_cast<uint32_t>(sizeof(float))};
    typename Use<Number>::Sum sum = 0;
    fill_rows();
    for (uint64_t i = uint64_t{blockIdx.x} * (blockDim.x / 32) + warp; i < supers;
         i += uint64_t{gridDim.x} * (blockDim.x / 32)) {
        const Block b(g, first + i, lane, table);
#pragma unroll
        for (int p = 0; p < block; p += 4) {
            typename Number::Value y[4];
            float least = 1; /* not read: small numbers keep their short dither here */
            Number::template values<true>(g, b, p, y, least);
            Use<Number>::add(sum, y);
        }
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <typename Kernel> cudaError_t allow_shared(Kernel kernel)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(shared_bytes));
}

Gauss gauss_of(const shuf__stream &s)
{
    return Gauss(shuf_gauss_make(s.seed, s.stream, s.mean, s.std), s);
}

template <typename Number> cudaError_t not_stored(const shuf__stream &s, int sm_count, void *sums)
{
    const auto kernel = gauss_not_stored<Number>;
    const unsigned blocks = not_stored_blocks_per_sm * static_cast<unsigned>(sm_count);
    const cudaError_t e = allow_shared(kernel);
    if (e != cudaSuccess)
        return e;
    kernel<<<blocks, not_stored_threads, shared_bytes>>>(
        gauss_of(s), s.offset / SHUF_GAUSS_SUPER, s.count / SHUF_GAUSS_SUPER,
        static_cast<typename Use<Number>::Sum *>(sums));
    return cudaGetLastError();
}

/* ---- Moments ---- */

constexpr int moment_threads = 256; /* one block per SM, so a thread can have the most registers */
constexpr int part_turns = part_values / (moment_threads * block);

__device__ __forceinline__ double rounded(F64, double x)
{
    return x;
}

__device__ __forceinline__ double rounded(F32, float x)
{
    return static_cast<double>(x);
}

__device__ __forceinline__ double rounded(F16, float x)
{
    return static_cast<double>(__half2float(F16::one(x)));
}

__device__ __forceinline__ double rounded(Bf16, float x)
{
    return static_cast<double>(__bfloat162float(Bf16::one(x)));
}

__device__ __forceinline__ void add_powers(double z, double (&sum)[powers])
{
    const double z2 = z * z, z4 = z2 * z2, z6 = z4 * z2;
    sum[0] += z;
    sum[1] += z2;
    sum[2] = fma(z2, z, sum[2]);
    sum[3] += z4;
    sum[4] = fma(z4, z, sum[4]);
    sum[5] += z6;
    sum[6] = fma(z6, z, sum[6]);
    sum[7] = fma(z4, z4, sum[7]);
}

/* Sums in three levels: 32 values, a thread, a block. No sum has so many terms that its rounding
 * errors are visible. */
template <typename Number>
__global__ void __launch_bounds__(moment_threads, 1)
    gauss_moments(__grid_constant__ const Gauss g, uint64_t first, Part *parts)
{
    using Reduce = cub::BlockReduce<double, moment_threads>;
    __shared__ typename Reduce::TempStorage storage;
    constexpr int warps = moment_threads / 32;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const InShared table{lane * static_cast<uint32_t>(sizeof(float))};
    double sum[powers] = {};
    fill_rows();
#pragma unroll 1
    for (int turn = 0; turn < part_turns; turn++) {
        const uint64_t super = (uint64_t{blockIdx.x} * part_turns + turn) * warps + warp;
        const Block b(g, first + super, lane, table);
        double group[powers] = {};
#pragma unroll
        for (int p = 0; p < block; p += 4) {
            typename Number::Value y[4];
            float least = 1; /* not read: small numbers keep their short dither here */
            Number::template values<true>(g, b, p, y, least);
#pragma unroll
            for (int i = 0; i < 4; i++)
                add_powers(rounded(Number{}, y[i]), group);
        }
#pragma unroll
        for (int k = 0; k < powers; k++)
            sum[k] += group[k];
    }
#pragma unroll
    for (int k = 0; k < powers; k++) {
        const double whole = Reduce(storage).Sum(sum[k]);
        if (threadIdx.x == 0)
            parts[blockIdx.x].power[k] = whole;
        __syncthreads();
    }
}

template <typename Number> cudaError_t moments(const shuf__stream &s, Part *parts)
{
    const auto kernel = gauss_moments<Number>;
    const cudaError_t e = allow_shared(kernel);
    if (e != cudaSuccess)
        return e;
    kernel<<<static_cast<unsigned>(s.count / part_values), moment_threads, shared_bytes>>>(
        gauss_of(s), s.offset / SHUF_GAUSS_SUPER, parts);
    return cudaGetLastError();
}

} // namespace

uint64_t not_stored_sums(int sm_count)
{
    return sizeof(double) * static_cast<uint64_t>(sm_count) * not_stored_threads *
           not_stored_blocks_per_sm;
}

cudaError_t not_stored_async(const shuf__request &request, int sm_count, void *sums)
{
    switch (request.dtype) {
    case SHUF_F64:
        return not_stored<F64>(request.stream, sm_count, sums);
    case SHUF_F32:
        return not_stored<F32>(request.stream, sm_count, sums);
    case SHUF_BF16:
        return not_stored<Bf16>(request.stream, sm_count, sums);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t moments_async(const shuf__request &request, Part *parts)
{
    switch (request.dtype) {
    case SHUF_F64:
        return moments<F64>(request.stream, parts);
    case SHUF_F32:
        return moments<F32>(request.stream, parts);
    case SHUF_F16:
        return moments<F16>(request.stream, parts);
    case SHUF_BF16:
        return moments<Bf16>(request.stream, parts);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace bench
