/* SPDX-License-Identifier: MIT
 *
 * The kernels of streams whose values come from single draws: uniform, Box and Muller's,
 * exponential, Bernoulli and integer streams. A thread computes all values of a draw. If their
 * address is a multiple of their size, it stores them with one instruction.
 *
 * A stream has a struct for each of its types of values:
 *
 *     struct Number {
 *         using Source = ...;                the parameters of the stream
 *         using Out = ...;                   the type
 *         static constexpr int each = ...;   values of a draw
 *         static __device__ void values(const Source &source, uint64_t draw, Out (&y)[each]);
 *     };
 */
#ifndef SHUF__CUDA_DRAWS_CUH
#define SHUF__CUDA_DRAWS_CUH

#include "stream.cuh"
#include "stream_sum.cuh"
#include "tuning.cuh"

#include <algorithm>

namespace shuf
{

namespace draws
{

constexpr uint64_t block = uint64_t{tuning::draw_threads} * tuning::draws_of_thread;

template <typename Source> struct Part {
    Source source;
    uint64_t offset, count, first; /* offset and count of the request; number of the first draw */
};

template <typename Out, int Each> struct alignas(sizeof(Out) * Each) Group {
    Out value[Each];
};

/* Stores the values of a draw. With Whole, the computation has all of them, and their address is a
 * multiple of their size. */
template <typename Number, bool Whole>
__device__ __forceinline__ void draw(const Part<typename Number::Source> &part, uint64_t number,
                                     bool aligned, typename Number::Out *out)
{
    constexpr int each = Number::each;
    Group<typename Number::Out, each> group;
    const uint64_t at = number * each - part.offset; /* may wrap in the first draw */
    Number::values(part.source, number, group.value);
    const bool at_once = Whole || (aligned && at + each <= part.count && at < part.count);
    if (at_once)
        *reinterpret_cast<Group<typename Number::Out, each> *>(out + at) = group;
#pragma unroll
    for (int i = 0; i < each; i++)
        if (!at_once && at + i < part.count)
            out[at + i] = group.value[i];
}

/* Block 0 begins with draw number `first`. Each other block continues where the block before it
 * ends. */
template <typename Number, bool Whole>
__global__ void __launch_bounds__(tuning::draw_threads)
    draw_all(__grid_constant__ const Part<typename Number::Source> part, uint64_t first,
             typename Number::Out *out)
{
    const bool aligned = part.offset % Number::each == 0;
    const uint64_t mine = first + uint64_t{blockIdx.x} * block + threadIdx.x;
#pragma unroll
    for (int i = 0; i < tuning::draws_of_thread; i++)
        draw<Number, Whole>(part, mine + i * tuning::draw_threads, aligned, out);
}

/* The threads of a quick computation. Types whose draws need more registers have fewer. */
template <typename Number> constexpr int quick_threads = tuning::quick_threads;

template <typename Number>
__global__ void __launch_bounds__(quick_threads<Number>)
    draw_quick(__grid_constant__ const Part<typename Number::Source> part,
               __grid_constant__ const Signal signal, typename Number::Out *out)
{
    const bool aligned = part.offset % Number::each == 0;
    for (uint64_t i = threadIdx.x; i * Number::each < part.count + Number::each; i += blockDim.x)
        draw<Number, false>(part, part.first + i, aligned, out);
    signal_done(signal);
}

template <typename Number, bool Whole>
void launch(const Part<typename Number::Source> &part, uint64_t first, uint64_t blocks,
            typename Number::Out *out, cudaStream_t stream)
{
    draw_all<Number, Whole>
        <<<static_cast<unsigned>(blocks), tuning::draw_threads, 0, stream>>>(part, first, out);
}

/* Of many draws, the blocks whose draws are all whole take a path without conditions, because
 * conditions would cost a uniform stream a quarter of the rate. If draws do not begin at multiples
 * of their size, all blocks take the slower path. So do few blocks, for which a second launch would
 * take longer. */
template <typename Number>
cudaError_t start_all(const Part<typename Number::Source> &part, uint64_t draws,
                      typename Number::Out *out, cudaStream_t stream)
{
    const bool is_fast = part.offset % Number::each == 0 && draws > tuning::draw_blocks * block;
    const uint64_t whole = is_fast ? part.count / Number::each / block : 0;
    const uint64_t others = (draws - whole * block + block - 1) / block;
    if (whole)
        launch<Number, true>(part, part.first, whole, out, stream);
    if (others)
        launch<Number, false>(part, part.first + whole * block, others, out, stream);
    return cudaGetLastError();
}

template <typename Number, bool Moments>
__global__ void __launch_bounds__(tuning::draw_threads)
    draw_sum(__grid_constant__ const Part<typename Number::Source> part, uint64_t draws,
             __grid_constant__ const Summary summary)
{
    constexpr int each = Number::each;
    Sums<typename Number::Out, Moments> sums(summary);
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < draws;
         i += uint64_t{gridDim.x} * blockDim.x) {
        typename Number::Out y[each];
        const uint64_t at = (part.first + i) * each - part.offset; /* may wrap in the first draw */
        Number::values(part.source, part.first + i, y);
        if (at + each <= part.count && at < part.count) {
#pragma unroll
            for (int k = 0; k < each; k++)
                sums.add(at + k, y[k]);
            continue;
        }
#pragma unroll
        for (int k = 0; k < each; k++)
            if (at + k < part.count)
                sums.add(at + k, y[k]);
    }
    sums.template finish<tuning::draw_threads>(summary, blockIdx.x);
}

template <typename Number>
cudaError_t start_sum(const Part<typename Number::Source> &part, uint64_t draws, int sm_count,
                      Summary *summary, cudaStream_t stream)
{
    const uint64_t needed = (draws + tuning::draw_threads - 1) / tuning::draw_threads;
    const uint64_t most = uint64_t{tuning::sum_blocks_per_sm} * static_cast<unsigned>(sm_count);
    const uint64_t blocks = std::min({needed, most, uint64_t{sums_parts}});
    const auto kernel = summary->moments ? draw_sum<Number, true> : draw_sum<Number, false>;
    summary->count = summary->moments ? static_cast<int>(blocks) : 0;
    kernel<<<static_cast<unsigned>(blocks), tuning::draw_threads, 0, stream>>>(part, draws,
                                                                               *summary);
    return cudaGetLastError();
}

template <typename Number>
cudaError_t start(const typename Number::Source &source, const shuf__stream &s, int sm_count,
                  const Target &to, cudaStream_t stream)
{
    constexpr uint64_t each = Number::each;
    const Part<typename Number::Source> part{source, s.offset, s.count, s.offset / each};
    auto *const out = static_cast<typename Number::Out *>(to.out);
    const uint64_t draws = (s.offset + s.count - 1) / each - part.first + 1;
    if (to.summary)
        return start_sum<Number>(part, draws, sm_count, to.summary, stream);
    if (!to.signal)
        return start_all<Number>(part, draws, out, stream);
    const uint64_t most = quick_threads<Number>, threads = (draws + 31) / 32 * 32;
    draw_quick<Number><<<1, static_cast<unsigned>(threads < most ? threads : most), 0, stream>>>(
        part, *to.signal, out);
    return cudaGetLastError();
}

/* Loads the kernels of quick computations. */
template <typename... Numbers> cudaError_t load()
{
    cudaFuncAttributes a;
    cudaError_t e = cudaSuccess;
    (void)((e = cudaFuncGetAttributes(&a, draw_quick<Numbers>), e == cudaSuccess) && ...);
    return e;
}

} // namespace draws

} // namespace shuf

#endif
