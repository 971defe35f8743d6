/* SPDX-License-Identifier: MIT
 *
 * Gaussian streams (shuf/gauss.h) on the GPU. A warp computes a superblock. Each thread has a whole
 * block of 32 values in its registers, so the transform needs no values of other threads. The
 * threads of a warp store neighbouring pairs of values. gauss.cuh has the code of a block.
 */
#include "gauss.cuh"

#include "stream.cuh"
#include "tuning.cuh"

#include <algorithm>

namespace shuf
{

namespace
{

using namespace gauss;

/* ---- Kernels ---- */

template <typename Number, bool Paired>
__device__ __forceinline__ void put_pair(typename Number::Out *to, typename Number::Value x,
                                         typename Number::Value y)
{
    if (Paired) {
        *reinterpret_cast<typename Number::Pair *>(to) = Number::pair(x, y);
    } else {
        to[0] = Number::one(x);
        to[1] = Number::one(y);
    }
}

/* Computes superblocks whose values are all requested. With Paired, pairs of values begin at even
 * places of the output. */
template <typename Number, bool Paired, bool Standard>
__global__ void __launch_bounds__(Number::threads, Number::blocks_per_sm)
    gauss_whole(__grid_constant__ const Gauss g, uint64_t first, uint64_t supers,
                typename Number::Out *out)
{
    __shared__ uint64_t list[Number::threads / lanes][again_most];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const InShared table{lane * static_cast<uint32_t>(sizeof(float))};
    Again again{list[warp], 0};
    const auto put = [out](uint64_t i, typename Number::Out y) { out[i] = y; };
    const auto ignore = [](int, typename Number::Value) {};
    fill_rows();
    for (uint64_t i = uint64_t{blockIdx.x} * (blockDim.x / 32) + warp; i < supers;
         i += uint64_t{gridDim.x} * (blockDim.x / 32)) {
        const Block b(g, first + i, lane, table);
        typename Number::Out *const to =
            out + ((first + i) * SHUF_GAUSS_SUPER - g.offset + place(0, lane));
        float least[block / 8];
#pragma unroll
        for (int p = 0; p < block; p += 4) {
            typename Number::Value y[4];
            if (p % 8 == 0)
                least[p / 8] = 1;
            Number::template values<Standard>(g, b, p, y, least[p / 8]);
            put_pair<Number, Paired>(to + p * 32, y[0], y[1]);
            put_pair<Number, Paired>(to + (p + 2) * 32, y[2], y[3]);
        }
        if constexpr (made_again<Number>) {
            uint32_t small = 0;
#pragma unroll
            for (int p = 0; p < block; p += 8)
                small |= too_small<Number>(b, p, least[p / 8], ignore);
            again.take<Number>(g, first + i, lane, small, put);
        }
    }
    if constexpr (made_again<Number>)
        again.make<Number>(g, lane, put);
}

/* Computes any superblock by one warp. Some of its values may not be requested. */
template <typename Number, typename Table>
__device__ __forceinline__ void draw_some(const Gauss &g, uint64_t super, const Table &table,
                                          uint64_t *list, typename Number::Out *out)
{
    const uint32_t lane = threadIdx.x % 32;
    const Block b(g, super, lane, table);
    const uint64_t at = super * SHUF_GAUSS_SUPER - g.offset; /* may wrap around */
    float least = 1;
#pragma unroll
    for (int p = 0; p < block; p += 4) {
        typename Number::Value y[4];
        Number::template values<false>(g, b, p, y, least);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const uint64_t i = at + place(p + k, lane);
            if (i < g.count)
                out[i] = Number::one(y[k]);
        }
    }
    if constexpr (made_again<Number>) {
        Again again{list, 0};
        const auto put = [out](uint64_t i, typename Number::Out y) { out[i] = y; };
        const auto ignore = [](int, typename Number::Value) {};
        uint32_t small = 0;
#pragma unroll
        for (int p = 0; p < block; p += 8)
            small |= too_small<Number>(b, p, least, ignore);
        again.take<Number>(g, super, lane, small, put);
        again.make<Number>(g, lane, put);
    }
}

/* Computes the superblocks `first`, first + step, ... */
template <typename Number>
__global__ void __launch_bounds__(32) gauss_some(__grid_constant__ const Gauss g, uint64_t first,
                                                 uint64_t step, typename Number::Out *out)
{
    __shared__ uint64_t list[again_most];
    draw_some<Number>(g, first + blockIdx.x * step, InGlobal{threadIdx.x}, list, out);
}

template <typename Number>
constexpr int more_threads = made_again<Number> ? Number::threads : tuning::gauss_wide_more_threads;

/* Computes `supers` superblocks, one in each warp. */
template <typename Number>
__global__ void __launch_bounds__(more_threads<Number>, Number::blocks_per_sm)
    gauss_more(__grid_constant__ const Gauss g, uint64_t first, uint64_t supers,
               typename Number::Out *out)
{
    __shared__ uint64_t list[more_threads<Number> / lanes][again_most];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint64_t i = uint64_t{blockIdx.x} * (blockDim.x / 32) + warp;
    fill_rows();
    if (i < supers)
        draw_some<Number>(g, first + i, InShared{lane * static_cast<uint32_t>(sizeof(float))},
                          list[warp], out);
}

template <typename Number>
__global__ void __launch_bounds__(tuning::gauss_quick_threads, 1)
    gauss_quick(__grid_constant__ const Gauss g, uint64_t first,
                __grid_constant__ const Signal signal, typename Number::Out *out)
{
    constexpr int threads = tuning::gauss_quick_threads;
    __shared__ uint64_t list[threads / lanes][again_most];
    const uint32_t warp = threadIdx.x / 32;
    draw_some<Number>(g, first + warp, InGlobal{threadIdx.x % 32}, list[warp], out);
    signal_done(signal);
}

/* ---- Launching ---- */

/* Launches a kernel with tables in shared memory, with a warp for each superblock, but at most
 * `most` blocks. */
template <typename Number, typename Kernel>
cudaError_t launch(Kernel kernel, int threads, uint64_t most, const Gauss &g, uint64_t first,
                   uint64_t supers, typename Number::Out *out, cudaStream_t stream)
{
    const auto warps = static_cast<unsigned>(threads / 32);
    const auto blocks = static_cast<unsigned>(std::min((supers + warps - 1) / warps, most));
    const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(shared_bytes));
    if (e != cudaSuccess)
        return e;
    kernel<<<blocks, threads, shared_bytes, stream>>>(g, first, supers, out);
    return cudaGetLastError();
}

template <typename Number, bool Paired, bool Standard>
cudaError_t draw_whole(const Gauss &g, uint64_t first, uint64_t supers, int sm_count,
                       typename Number::Out *out, cudaStream_t stream)
{
    const uint64_t most = uint64_t{tuning::gauss_blocks_per_sm} * static_cast<unsigned>(sm_count);
    return launch<Number>(gauss_whole<Number, Paired, Standard>, Number::threads, most, g, first,
                          supers, out, stream);
}

/* Computes the superblocks whose values are all requested, and then the first and the last one.
 * Several launches let the blocks of small computations start in between. */
template <typename Number>
cudaError_t draw(const Gauss &g, const Supers &of, int sm_count, typename Number::Out *out,
                 cudaStream_t stream)
{
    constexpr uint64_t most = tuning::gauss_launch / SHUF_GAUSS_SUPER;
    cudaError_t e = cudaSuccess;
    auto whole =
        g.offset % 2 == 0 ? draw_whole<Number, true, false> : draw_whole<Number, false, false>;
    if constexpr (made_again<Number>) /* doubles gain nothing, as scaling costs them no time */
        if (g.offset % 2 == 0 && g.std == 1 && g.mean == 0)
            whole = draw_whole<Number, true, true>;
    for (uint64_t at = of.from; e == cudaSuccess && at < of.to; at += most)
        e = whole(g, at, of.to - at < most ? of.to - at : most, sm_count, out, stream);
    if (e != cudaSuccess || !of.edges)
        return e;
    gauss_some<Number><<<of.edges, 32, 0, stream>>>(g, of.edge, of.edge_step, out);
    return cudaGetLastError();
}

template <typename Number>
cudaError_t start(const shuf__stream &s, int sm_count, const Target &target, cudaStream_t stream)
{
    const Gauss g(shuf_gauss_make_keyed(shuf__stream_key(&s), s.stream, s.mean, s.std), s);
    auto *const to = static_cast<typename Number::Out *>(target.out);
    const uint64_t first = s.offset / SHUF_GAUSS_SUPER;
    const uint64_t supers = (s.offset + s.count - 1) / SHUF_GAUSS_SUPER - first + 1;
    if (supers > tuning::gauss_more && !target.signal)
        return draw<Number>(g, Supers(s), sm_count, to, stream);
    if (supers > tuning::gauss_some && !target.signal)
        return launch<Number>(gauss_more<Number>, more_threads<Number>, supers, g, first, supers,
                              to, stream);
    if (target.signal)
        gauss_quick<Number>
            <<<1, 32 * static_cast<unsigned>(supers), 0, stream>>>(g, first, *target.signal, to);
    else
        gauss_some<Number><<<static_cast<unsigned>(supers), 32, 0, stream>>>(g, first, 1, to);
    return cudaGetLastError();
}

} // namespace

cudaError_t gauss_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                        cudaStream_t stream)
{
    if (to.summary)
        return gauss_sum_async(s, dtype, sm_count, to.summary, stream);
    switch (dtype) {
    case SHUF_F64:
        return start<F64>(s, sm_count, to, stream);
    case SHUF_F32:
        return start<F32>(s, sm_count, to, stream);
    case SHUF_F16:
        return start<F16>(s, sm_count, to, stream);
    case SHUF_BF16:
        return start<Bf16>(s, sm_count, to, stream);
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

} // namespace shuf
