/* SPDX-License-Identifier: MIT
 *
 * See paper_kernels.cuh. The bijections and the ranks in a tile come from the backend. This file
 * adds the gather, because the kernels of the backend store an index at its place.
 */
#include "paper_kernels.cuh"

#include "cuda/tile.cuh"
#include "paper.h"

namespace bench
{

namespace
{

using shuf::Lcg;
using shuf::Philox24;
namespace tuning = shuf::tuning;
using tuning::items;
using tuning::tile;
constexpr int warps = tuning::threads / 32;

struct Parameters {
    uint32_t n, domain;
    uint32_t key[shuf::key_words];
};

Parameters parameters_of(uint64_t n, shuf_purpose purpose, uint64_t epoch)
{
    Parameters parameters{static_cast<uint32_t>(n), static_cast<uint32_t>(domain_of(n)), {}};
    for (int block = 0; block < shuf::key_words / 8; block++)
        shuf_key_words(shuf_key_of_seed(PAPER_SEED), epoch, purpose, block,
                       parameters.key + 8 * block);
    return parameters;
}

unsigned blocks_for(uint64_t work, int threads = tuning::threads)
{
    return static_cast<unsigned>((work + threads - 1) / threads);
}

/* Calls `work` with the bijection for n. */
template <typename Work> cudaError_t with_philox(uint64_t n, Work work)
{
    if (shuf_domain_bits(n) % 2)
        work(Philox24<uint32_t, true>(n));
    else
        work(Philox24<uint32_t, false>(n));
    return cudaGetLastError();
}

/* ---- Common parts of the kernels ---- */

__device__ __forceinline__ uint32_t first_of_thread()
{
    return blockIdx.x * tile + threadIdx.x / 32 * (32 * items) + threadIdx.x % 32;
}

/* Sets x to f of this thread's numbers, in the order that rank_kept() expects. Numbers past the end
 * of the domain give n. */
template <typename Bijection>
__device__ __forceinline__ void evaluate_tile(const Bijection &f, const Parameters &parameters,
                                              uint32_t *key, uint32_t (&x)[items])
{
    if (threadIdx.x < shuf::key_words)
        key[threadIdx.x] = parameters.key[threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < items; i++)
        x[i] = first_of_thread() + 32 * i;
    f.evaluate(key, x);
    if (parameters.domain < tile) {
#pragma unroll
        for (int i = 0; i < items; i++)
            x[i] = first_of_thread() + 32 * i < parameters.domain ? x[i] : parameters.n;
    }
}

/* Issues all loads before it uses the first one, so their latencies overlap. */
__device__ __forceinline__ void load(const Arrays &arrays, const Parameters &parameters,
                                     const uint32_t (&x)[items], uint64_t (&item)[items])
{
#pragma unroll
    for (int i = 0; i < items; i++)
        item[i] = x[i] < parameters.n ? arrays.in[x[i]] : 0;
}

/* ---- Bijective0 ---- */

template <typename Bijection>
__global__ void __launch_bounds__(tuning::threads, tuning::blocks_per_sm)
    evaluate(Bijection f, __grid_constant__ const Parameters parameters, uint32_t *values,
             uint32_t *kept)
{
    __shared__ uint32_t key[shuf::key_words];
    uint32_t x[items];
    evaluate_tile(f, parameters, key, x);
#pragma unroll
    for (int i = 0; i < items; i++) {
        const uint32_t at = first_of_thread() + 32 * i;
        if (at < parameters.domain) {
            values[at] = x[i];
            kept[at] = x[i] < parameters.n;
        }
    }
}

__global__ void __launch_bounds__(tuning::threads)
    compact(const Arrays arrays, uint32_t domain, const uint32_t *values, const uint32_t *kept,
            const uint32_t *places)
{
    const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < domain && kept[at])
        arrays.out[places[at]] = arrays.in[values[at]];
}

/* ---- Bijective1 ---- */

template <typename Bijection>
__global__ void __launch_bounds__(tuning::threads, tuning::blocks_per_sm)
    count(Bijection f, __grid_constant__ const Parameters parameters, uint32_t *counts)
{
    __shared__ uint32_t key[shuf::key_words];
    uint32_t x[items], kept = 0;
    evaluate_tile(f, parameters, key, x);
#pragma unroll
    for (int i = 0; i < items; i++)
        kept += __syncthreads_count(x[i] < parameters.n);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = kept;
}

template <typename Bijection>
__global__ void __launch_bounds__(tuning::threads, tuning::blocks_per_sm)
    place(Bijection f, __grid_constant__ const Parameters parameters, const Arrays arrays,
          const uint32_t *places)
{
    __shared__ uint32_t key[shuf::key_words], warp_kept[warps];
    uint32_t x[items], rank[items];
    uint64_t item[items];
    evaluate_tile(f, parameters, key, x);
    load(arrays, parameters, x, item);
    shuf::rank_kept<warps>(x, parameters.n, rank, warp_kept, warps);
    uint64_t *out = arrays.out + places[blockIdx.x];
#pragma unroll
    for (int i = 0; i < items; i++)
        if (x[i] < parameters.n)
            out[rank[i]] = item[i];
}

/* ---- Gather and checks ---- */

constexpr int gather_items = 4;

__global__ void __launch_bounds__(tuning::threads)
    gather(const Arrays arrays, const uint32_t *__restrict__ index)
{
    const uint64_t first = uint64_t{blockIdx.x} * (gather_items * tuning::threads) + threadIdx.x;
    uint64_t item[gather_items];
#pragma unroll
    for (int i = 0; i < gather_items; i++)
        if (first + i * tuning::threads < arrays.n)
            item[i] = arrays.in[index[first + i * tuning::threads]];
#pragma unroll
    for (int i = 0; i < gather_items; i++)
        if (first + i * tuning::threads < arrays.n)
            arrays.out[first + i * tuning::threads] = item[i];
}

__global__ void __launch_bounds__(tuning::threads) fill(uint64_t *to, uint64_t count)
{
    const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = paper_item(i);
}

__device__ __forceinline__ void add_wrong(bool is_wrong, unsigned long long *wrong)
{
    const int here = __syncthreads_count(is_wrong);
    if (here && threadIdx.x == 0)
        atomicAdd(wrong, static_cast<unsigned long long>(here));
}

__global__ void __launch_bounds__(tuning::threads)
    check_all(const Arrays arrays, uint32_t *seen, unsigned long long *wrong)
{
    const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    bool is_wrong = false;
    if (i < arrays.n) {
        const uint64_t index = paper_index(arrays.out[i]);
        const uint32_t bit = 1u << index % 32;
        is_wrong = index >= arrays.n || (atomicOr(&seen[index / 32], bit) & bit);
    }
    add_wrong(is_wrong, wrong);
}

__device__ __forceinline__ uint64_t back(const shuf_philox24 &f, uint64_t value)
{
    return shuf_philox24_inverse(&f, value);
}

__device__ __forceinline__ uint64_t back(const shuf_lcg &f, uint64_t value)
{
    return shuf_lcg_inverse(&f, value);
}

template <typename Inline>
__global__ void __launch_bounds__(tuning::threads)
    check_order(__grid_constant__ const Inline f, const Arrays arrays, unsigned long long *wrong)
{
    const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    bool is_wrong = false;
    if (i + 1 < arrays.n)
        is_wrong = back(f, paper_index(arrays.out[i])) >= back(f, paper_index(arrays.out[i + 1]));
    add_wrong(is_wrong, wrong);
}

} // namespace

uint64_t domain_of(uint64_t n)
{
    return uint64_t{1} << shuf_domain_bits(n);
}

uint64_t tiles_of(uint64_t n)
{
    return (domain_of(n) + tile - 1) / tile;
}

cudaError_t evaluate_async(uint64_t n, uint64_t epoch, uint32_t *values, uint32_t *kept)
{
    const Parameters parameters = parameters_of(n, SHUF_PURPOSE_PHILOX24, epoch);
    const auto tiles = static_cast<unsigned>(tiles_of(n));
    return with_philox(
        n, [&](auto f) { evaluate<<<tiles, tuning::threads>>>(f, parameters, values, kept); });
}

cudaError_t compact_async(const Arrays &arrays, const uint32_t *values, const uint32_t *kept,
                          const uint32_t *places)
{
    const auto domain = static_cast<uint32_t>(domain_of(arrays.n));
    compact<<<blocks_for(domain), tuning::threads>>>(arrays, domain, values, kept, places);
    return cudaGetLastError();
}

cudaError_t count_async(uint64_t n, uint64_t epoch, uint32_t *counts)
{
    const Parameters parameters = parameters_of(n, SHUF_PURPOSE_PHILOX24, epoch);
    const auto tiles = static_cast<unsigned>(tiles_of(n));
    return with_philox(n,
                       [&](auto f) { count<<<tiles, tuning::threads>>>(f, parameters, counts); });
}

cudaError_t place_async(const Arrays &arrays, uint64_t epoch, const uint32_t *places)
{
    const Parameters parameters = parameters_of(arrays.n, SHUF_PURPOSE_PHILOX24, epoch);
    const auto tiles = static_cast<unsigned>(tiles_of(arrays.n));
    return with_philox(arrays.n, [&](auto f) {
        place<<<tiles, tuning::threads>>>(f, parameters, arrays, places);
    });
}

cudaError_t gather_async(const Arrays &arrays, const uint32_t *index)
{
    gather<<<blocks_for(arrays.n, gather_items * tuning::threads), tuning::threads>>>(arrays,
                                                                                      index);
    return cudaGetLastError();
}

cudaError_t fill_async(uint64_t *to, uint64_t count)
{
    fill<<<blocks_for(count), tuning::threads>>>(to, count);
    return cudaGetLastError();
}

cudaError_t check_all_async(const Arrays &arrays, uint32_t *seen, unsigned long long *wrong)
{
    check_all<<<blocks_for(arrays.n), tuning::threads>>>(arrays, seen, wrong);
    return cudaGetLastError();
}

cudaError_t check_order_async(const Arrays &arrays, shuf_algorithm algorithm, uint64_t epoch,
                              unsigned long long *wrong)
{
    const unsigned blocks = blocks_for(arrays.n);
    if (algorithm == SHUF_ALGORITHM_LCG)
        check_order<<<blocks, tuning::threads>>>(shuf_lcg_make(arrays.n, PAPER_SEED, epoch), arrays,
                                                 wrong);
    else
        check_order<<<blocks, tuning::threads>>>(shuf_philox24_make(arrays.n, PAPER_SEED, epoch),
                                                 arrays, wrong);
    return cudaGetLastError();
}

} // namespace bench
