/* SPDX-License-Identifier: MIT
 *
 * See quick.cuh. A small computation has one tile, so it needs no scan. Special kernels for n = 2^B
 * would not shorten the latency.
 */
#include "quick.cuh"

#include "permute.cuh"
#include "tile.cuh"

namespace shuf
{

namespace
{

constexpr int most_warps = tuning::quick_threads / 32;

template <typename Out>
__device__ __forceinline__ void place(const Launch &launch, uint64_t position, uint32_t kept,
                                      const uint32_t (&x)[tuning::quick_items],
                                      const uint32_t (&rank)[tuning::quick_items], Out *out)
{
    if (launch.stride > 1)
        store<true>(launch, position, kept, x, rank, out);
    else
        store<false>(launch, position, kept, x, rank, out);
}

template <typename Bijection, typename Out>
__global__ void __launch_bounds__(tuning::quick_threads)
    quick(Bijection f, __grid_constant__ const Launch launch, __grid_constant__ const Signal signal,
          Out *out)
{
    __shared__ uint32_t warp_kept[most_warps];
    const uint32_t n = static_cast<uint32_t>(launch.n);
    const uint32_t start = threadIdx.x / 32 * (32 * tuning::quick_items) + threadIdx.x % 32;
    uint32_t x[tuning::quick_items], rank[tuning::quick_items];
#pragma unroll
    for (int i = 0; i < tuning::quick_items; i++)
        x[i] = start + 32 * i;
    f.evaluate(launch.key, x);
#pragma unroll
    for (int i = 0; i < tuning::quick_items; i++) /* leaves out inputs past a small domain */
        x[i] = start + 32 * i < launch.domain ? x[i] : n;
    const uint32_t kept =
        rank_kept<most_warps>(x, n, rank, warp_kept, static_cast<int>(blockDim.x / 32));
    place(launch, 0, kept, x, rank, out);
    if (shuf__slice_wraps(&launch)) /* the last position of a padded shard is at the front */
        place(launch, launch.n, kept, x, rank, out);
    signal_done(signal);
}

template <typename Bijection>
cudaError_t run(const shuf__permutation &p, unsigned width, void *out, Signal signal,
                cudaStream_t stream)
{
    const Bijection f(p.n);
    const Launch launch = make_launch(p, Bijection::purpose);
    const auto threads = static_cast<unsigned>(
        launch.domain > 32 * tuning::quick_items ? launch.domain / tuning::quick_items : 32);
    if (width == 4)
        quick<<<1, threads, 0, stream>>>(f, launch, signal, static_cast<uint32_t *>(out));
    else
        quick<<<1, threads, 0, stream>>>(f, launch, signal, static_cast<uint64_t *>(out));
    return cudaGetLastError();
}

template <typename Bijection> cudaError_t load()
{
    cudaFuncAttributes attributes;
    cudaError_t e = cudaFuncGetAttributes(&attributes, quick<Bijection, uint32_t>);
    return e == cudaSuccess ? cudaFuncGetAttributes(&attributes, quick<Bijection, uint64_t>) : e;
}

} // namespace

cudaError_t quick_async(const shuf__permutation &p, unsigned width, void *out, Signal signal,
                        cudaStream_t stream)
{
    const bool odd = shuf_domain_bits(p.n) % 2 != 0;
    switch (p.algorithm) {
    case SHUF_ALGORITHM_PRIMEFOLD:
        return primefold_async(p, width, out, &signal, stream);
    case SHUF_ALGORITHM_PHILOX24:
        return odd ? run<Philox24<uint32_t, true>>(p, width, out, signal, stream)
                   : run<Philox24<uint32_t, false>>(p, width, out, signal, stream);
    case SHUF_ALGORITHM_LCG:
        return run<Lcg<uint32_t>>(p, width, out, signal, stream);
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

cudaError_t quick_load()
{
    cudaError_t e = load<Philox24<uint32_t, true>>();
    if (e == cudaSuccess)
        e = load<Philox24<uint32_t, false>>();
    if (e == cudaSuccess)
        e = load<Lcg<uint32_t>>();
    return e == cudaSuccess ? primefold_load() : e;
}

} // namespace shuf
