/* SPDX-License-Identifier: MIT
 *
 * The summary of a Gaussian stream in one pass that stores no values (stream_sum.cuh). A warp
 * computes superblocks as in gauss.cu.
 */
#include "gauss.cuh"

#include "stream_sum.cuh"

namespace shuf
{

namespace
{

using namespace gauss;

template <typename Number, bool Moments>
constexpr int sum_threads =
    Moments || !made_again<Number> ? tuning::gauss_sum_threads : tuning::gauss_threads;

/* The numbers at four positions. */
template <typename Number>
__device__ __forceinline__ void numbers_of(const Gauss &g, const Block &b, int p,
                                           typename Number::Value (&z)[4], float &least)
{
    if constexpr (made_again<Number>)
        Number::numbers(b, p, z, least);
    else
        b.doubles(g, p, z);
}

template <typename Number> __device__ __forceinline__ bool is_right(typename Number::Value z)
{
    return !made_again<Number> || fabsf(z) > static_cast<float>(SHUF_GAUSS_SMALL);
}

template <typename Number>
__device__ __forceinline__ typename Number::Out value_of(const Gauss &g, typename Number::Value z)
{
    return Number::one(Number::scaled(g, z));
}

/* Adds superblocks first, first + step, ..., whose values are all requested. Numbers that are too
 * small for a float are added, and taken back when they are noted for the computation in double
 * precision. A superblock always has larger ones, so these are no extremes. */
template <typename Number, bool Moments>
__global__ void __launch_bounds__(sum_threads<Number, Moments>,
                                  tuning::asked(tuning::gauss_blocks_per_sm))
    sum_whole(__grid_constant__ const Gauss g, uint64_t first, uint64_t end,
              __grid_constant__ const Summary summary)
{
    constexpr int warps = sum_threads<Number, Moments> / 32;
    __shared__ uint64_t list[warps][again_most];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const InShared table{lane * static_cast<uint32_t>(sizeof(float))};
    Sums<typename Number::Out, Moments> sums(summary);
    Again again{list[warp], 0};
    const auto put = [&sums](uint64_t i, typename Number::Out y) { sums.add(i, y); };
    fill_rows();
    for (uint64_t super = first + blockIdx.x * warps + warp; super < end;
         super += uint64_t{gridDim.x} * warps) {
        const Block b(g, super, lane, table);
        const uint64_t at = super * SHUF_GAUSS_SUPER - g.offset + place(0, lane);
        const auto take_back = [&](int q, typename Number::Value z) {
            sums.take_back(at + place(q, 0), value_of<Number>(g, z));
        };
        uint32_t small = 0;
#pragma unroll
        for (int p = 0; p < block; p += 8) {
            float least = 1;
#pragma unroll
            for (int q = p; q < p + 8; q += 4) {
                typename Number::Value z[4];
                numbers_of<Number>(g, b, q, z, least);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sums.add(at + place(q + k, 0), value_of<Number>(g, z[k]),
                             is_right<Number>(z[k]));
            }
            if constexpr (made_again<Number>)
                small |= too_small<Number>(b, p, least, take_back);
        }
        if constexpr (made_again<Number>)
            again.take<Number>(g, super, lane, small, put);
    }
    if constexpr (made_again<Number>)
        again.make<Number>(g, lane, put);
    sums.template finish<sum_threads<Number, Moments>>(summary, blockIdx.x);
}

/* Adds the superblocks `first` and `first + step`, some of whose values are not requested. */
template <typename Number, bool Moments>
__global__ void __launch_bounds__(32)
    sum_edge(__grid_constant__ const Gauss g, uint64_t first, uint64_t step,
             __grid_constant__ const Summary summary)
{
    __shared__ uint64_t list[again_most];
    const uint32_t lane = threadIdx.x;
    const uint64_t super = first + blockIdx.x * step;
    const uint64_t at = super * SHUF_GAUSS_SUPER - g.offset; /* may wrap around */
    const Block b(g, super, lane, InGlobal{lane});
    Sums<typename Number::Out, Moments> sums(summary);
    float least = 1;
    uint32_t small = 0;
#pragma unroll
    for (int p = 0; p < block; p += 4) {
        typename Number::Value z[4];
        numbers_of<Number>(g, b, p, z, least);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const uint64_t i = at + place(p + k, lane);
            if (!is_right<Number>(z[k]))
                small |= 1u << (p + k);
            else if (i < g.count)
                sums.add(i, value_of<Number>(g, z[k]));
        }
    }
    if constexpr (made_again<Number>) {
        Again again{list, 0};
        const auto put = [&sums](uint64_t i, typename Number::Out y) { sums.add(i, y); };
        again.take<Number>(g, super, lane, small, put);
        again.make<Number>(g, lane, put);
    }
    sums.template finish<32>(summary, summary.count + blockIdx.x);
}

template <typename Number, bool Moments>
cudaError_t start_of(const shuf__stream &s, int sm_count, Summary *summary, cudaStream_t stream)
{
    constexpr uint64_t warps = sum_threads<Number, Moments> / 32;
    const auto kernel = sum_whole<Number, Moments>;
    const Gauss g(shuf_gauss_make_keyed(shuf__stream_key(&s), s.stream, s.mean, s.std), s);
    const Supers of(s);
    const uint64_t most = uint64_t{tuning::gauss_blocks_per_sm} * static_cast<unsigned>(sm_count);
    const uint64_t needed = of.from < of.to ? (of.to - of.from + warps - 1) / warps : 0;
    const auto blocks = static_cast<unsigned>(needed < most ? needed : most);
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(shared_bytes));
    if (e != cudaSuccess)
        return e;
    summary->count = Moments ? static_cast<int>(blocks) : 0;
    if (blocks)
        kernel<<<blocks, sum_threads<Number, Moments>, shared_bytes, stream>>>(g, of.from, of.to,
                                                                               *summary);
    if (of.edges)
        sum_edge<Number, Moments><<<of.edges, 32, 0, stream>>>(g, of.edge, of.edge_step, *summary);
    summary->count += Moments ? static_cast<int>(of.edges) : 0;
    return cudaGetLastError();
}

template <typename Number>
cudaError_t start(const shuf__stream &s, int sm_count, Summary *summary, cudaStream_t stream)
{
    return summary->moments ? start_of<Number, true>(s, sm_count, summary, stream)
                            : start_of<Number, false>(s, sm_count, summary, stream);
}

} // namespace

cudaError_t gauss_sum_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, Summary *summary,
                            cudaStream_t stream)
{
    switch (dtype) {
    case SHUF_F64:
        return start<F64>(s, sm_count, summary, stream);
    case SHUF_F32:
        return start<F32>(s, sm_count, summary, stream);
    case SHUF_F16:
        return start<F16>(s, sm_count, summary, stream);
    case SHUF_BF16:
        return start<Bf16>(s, sm_count, summary, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace shuf
