/* SPDX-License-Identifier: MIT
 *
 * The summary of a Gaussian stream in one pass that stores no values (stream_sum.cuh). A warp
 * computes superblocks as in gauss.cu. It leaves out the numbers that are too small for a float, and
 * adds them when they are computed again.
 */
#include "gauss.cuh"

#include "stream_sum.cuh"

namespace shuf
{

namespace
{

using namespace gauss;

/* The numbers of four positions, and which of them are right. */
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

/* Adds superblocks first, first + step, ... With Whole, all values of these are requested. */
template <typename Number, bool Whole, typename Table>
__device__ __forceinline__ void add_up(const Gauss &g, uint64_t first, uint64_t end, uint64_t step,
                                       const Table &table, uint64_t *list,
                                       Sums<typename Number::Out> &sums)
{
    const uint32_t lane = threadIdx.x % 32;
    Again again{list, 0};
    const auto put = [&sums](uint64_t i, typename Number::Out y) { sums.add(i, y); };
    for (uint64_t super = first; super < end; super += step) {
        const Block b(g, super, lane, table);
        const uint64_t at = super * SHUF_GAUSS_SUPER - g.offset + place(0, lane); /* may wrap */
        float least[block / 8];
#pragma unroll
        for (int p = 0; p < block; p += 4) {
            typename Number::Value z[4];
            if (p % 8 == 0)
                least[p / 8] = 1;
            numbers_of<Number>(g, b, p, z, least[p / 8]);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const uint64_t i = at + place(p + k, 0);
                if (is_right<Number>(z[k]) && (Whole || i < g.count))
                    sums.add(i, Number::one(Number::scaled(g, z[k])));
            }
        }
        if constexpr (made_again<Number>) {
            uint32_t small = 0;
#pragma unroll
            for (int p = 0; p < block; p += 8)
                small |= too_small<Number>(b, p, least[p / 8]);
            again.take<Number>(g, super, lane, small, put);
        }
    }
    if constexpr (made_again<Number>)
        again.make<Number>(g, lane, put);
}

template <typename Number>
__global__ void __launch_bounds__(tuning::gauss_wide_threads, tuning::gauss_blocks_per_sm)
    sum_whole(__grid_constant__ const Gauss g, uint64_t first, uint64_t end,
              __grid_constant__ const Summary summary)
{
    constexpr int warps = tuning::gauss_wide_threads / 32;
    __shared__ uint64_t list[warps][again_most];
    const uint32_t warp = threadIdx.x / 32;
    const InShared table{threadIdx.x % 32 * static_cast<uint32_t>(sizeof(float))};
    Sums<typename Number::Out> sums(summary);
    fill_rows();
    add_up<Number, true>(g, first + blockIdx.x * warps + warp, end, uint64_t{gridDim.x} * warps,
                         table, list[warp], sums);
    sums.template finish<tuning::gauss_wide_threads>(summary, blockIdx.x);
}

/* Some values of the superblocks `first` and `first + step` are not requested. */
template <typename Number>
__global__ void __launch_bounds__(32)
    sum_edge(__grid_constant__ const Gauss g, uint64_t first, uint64_t step,
             __grid_constant__ const Summary summary)
{
    __shared__ uint64_t list[again_most];
    const uint64_t super = first + blockIdx.x * step;
    Sums<typename Number::Out> sums(summary);
    add_up<Number, false>(g, super, super + 1, 1, InGlobal{threadIdx.x % 32}, list, sums);
    sums.template finish<32>(summary, summary.count + blockIdx.x);
}

template <typename Number>
cudaError_t start(const shuf__stream &s, int sm_count, Summary *summary, cudaStream_t stream)
{
    constexpr uint64_t warps = tuning::gauss_wide_threads / 32;
    const Gauss g(shuf_gauss_make_keyed(shuf__stream_key(&s), s.stream, s.mean, s.std), s);
    const Supers of(s);
    const uint64_t most = uint64_t{tuning::gauss_blocks_per_sm} * static_cast<unsigned>(sm_count);
    const uint64_t needed = (of.to - of.from + warps - 1) / warps;
    summary->count = 0;
    if (of.from < of.to) {
        const cudaError_t e =
            cudaFuncSetAttribute(sum_whole<Number>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes));
        if (e != cudaSuccess)
            return e;
        summary->count = static_cast<int>(needed < most ? needed : most);
        sum_whole<Number><<<static_cast<unsigned>(summary->count), tuning::gauss_wide_threads,
                            shared_bytes, stream>>>(g, of.from, of.to, *summary);
    }
    if (of.edges) {
        sum_edge<Number><<<of.edges, 32, 0, stream>>>(g, of.edge, of.edge_step, *summary);
        summary->count += static_cast<int>(of.edges);
    }
    return cudaGetLastError();
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
