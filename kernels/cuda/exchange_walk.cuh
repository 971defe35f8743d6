/* SPDX-License-Identifier: MIT
 *
 * The kernels of exchange_few.cu. A block evaluates a tile of neighbouring positions. Each thread
 * has neighbours of the tile, so a list of its values in the order of the threads has ascending
 * positions. select_range() finds its place in the list by decoupled look-back, as scan.cuh does.
 * split_ranges() reads its places from the counts of count_ranges(), because the list of a rank
 * begins after those of the ranks before it.
 */
#ifndef SHUF__CUDA_EXCHANGE_WALK_CUH
#define SHUF__CUDA_EXCHANGE_WALK_CUH

#include "fold_rows.cuh"
#include "tuning.cuh"

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cuda/std/functional>

namespace shuf::walk
{

constexpr int warps = fold_threads / 32;
using TileState = cub::ScanTileState<uint32_t>;
using Plus = ::cuda::std::plus<>;
using Prefix = cub::TilePrefixCallbackOp<uint32_t, Plus, TileState>;

template <typename Form>
constexpr int groups = sizeof(typename Form::Word) == 4 ? tuning::walk_groups
                                                        : tuning::walk_wide_groups;
template <typename Form>
constexpr int blocks_per_sm = sizeof(typename Form::Word) == 4 ? tuning::walk_blocks_per_sm
                                                               : tuning::walk_wide_blocks_per_sm;
template <typename Form> constexpr uint32_t each = groups<Form> *group; /* positions of a thread */
template <typename Form> constexpr uint32_t tile = fold_threads *each<Form>;

/* The positions that a launch evaluates. */
struct Positions {
    uint64_t first, count;

    template <typename Form> __device__ __forceinline__ uint64_t of_thread() const
    {
        return uint64_t{blockIdx.x} * tile<Form> + threadIdx.x * each<Form>;
    }
};

/* Neighbouring values of the permutation: the records of a rank. */
template <typename Word> struct Range {
    Word first, count;
};

template <typename Word> struct Ranges {
    Range<Word> range[tuning::split_ranks];
    uint32_t count;
};

/* The values at a thread's positions. */
template <typename Form> struct Values {
    using Word = typename Form::Word;
    Word x[groups<Form>][group];
    uint32_t valid; /* a bit for each position that the launch has */

    __device__ __forceinline__ Values(const Form &f, Word one, const Positions &positions)
    {
        const uint64_t at = positions.of_thread<Form>();
        const uint64_t left = at < positions.count ? positions.count - at : 0;
        const uint64_t first = positions.first + (left ? at : 0);
        valid = (1u << (left < each<Form> ? left : each<Form>)) - 1;
        Word start = f.start(f.row, first);
#pragma unroll
        for (int g = 0; g < groups<Form>; g++)
#pragma unroll
            for (int c = 0; c < group; c++) {
                x[g][c] = f.first(start);
                start = f.add(start, one);
            }
        uint32_t met = 0, again = 0;
        f.evaluate_unchecked(f.row, x, met);
#pragma unroll
        for (int g = 0; g < groups<Form>; g++)
            again |= finished(f, met, x[g]) ? 0 : unfinished(f, met, x[g]) << g * group;
        repair(f, first, again & valid);
    }

    /* Computes single values again. */
    __device__ __forceinline__ void repair(const Form &f, uint64_t first, uint32_t again)
    {
#pragma unroll 1
        for (; again != 0; again &= again - 1) {
            const int which = __ffs(static_cast<int>(again)) - 1;
            const Word right = cycle_walk(f, f.row, first + which);
#pragma unroll
            for (int i = 0; i < groups<Form> * group; i++)
                x[i / group][i % group] = i == which ? right : x[i / group][i % group];
        }
    }

    __device__ __forceinline__ Word value(int i) const
    {
        return x[i / group][i % group];
    }

    /* A bit for each value in the range. */
    __device__ __forceinline__ uint32_t inside(const Range<Word> &range) const
    {
        uint32_t hits = 0;
#pragma unroll
        for (int i = 0; i < groups<Form> * group; i++)
            hits |= static_cast<Word>(value(i) - range.first) < range.count ? 1u << i : 0;
        return hits & valid;
    }
};

/* Numbers the items of a block, thread by thread. All threads wait in the constructor. */
struct BlockPart {
    uint32_t begin, all;

    __device__ __forceinline__ BlockPart(uint32_t count, uint32_t (&of_warp)[warps])
    {
        const WarpPart part(count);
        const uint32_t warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0)
            of_warp[warp] = part.all;
        __syncthreads();
        begin = part.begin, all = 0;
#pragma unroll
        for (uint32_t w = 0; w < warps; w++) {
            begin += w < warp ? of_warp[w] : 0;
            all += of_warp[w];
        }
    }
};

/* Shared memory in which a block collects numbers, to store neighbours together. Threads begin at
 * distances of up to 16 numbers. The unused number after every 32 keeps them in different banks. */
template <typename Form, typename Number> struct Stage {
    Number number[tile<Form> + tile<Form> / 32];

    __device__ __forceinline__ Number &at(uint32_t i)
    {
        return number[i + i / 32];
    }

    /* Calls number_of(i) for each bit i of `hits`. */
    template <typename NumberOf>
    __device__ __forceinline__ void collect(uint32_t begin, uint32_t hits, NumberOf number_of)
    {
#pragma unroll
        for (uint32_t i = 0; i < each<Form>; i++)
            if (hits >> i & 1)
                at(begin++) = static_cast<Number>(number_of(i));
    }

    __device__ __forceinline__ void store(uint32_t count, Number *out)
    {
        for (uint32_t i = threadIdx.x; i < count; i += fold_threads)
            out[i] = at(i);
    }
};

__global__ void __launch_bounds__(fold_threads) begin_tiles(TileState state, int tiles)
{
    state.InitializeStatus(tiles);
}

/* Called by the first warp. Sets *prefix to the number of hits in all tiles before this one.
 * total[0] is the number before the launch, and total[1] receives the number after it. */
__device__ __forceinline__ void look_back(TileState &state, Prefix::TempStorage &storage,
                                          uint32_t hits, uint64_t *total, uint64_t *prefix)
{
    uint32_t before = 0;
    if (blockIdx.x > 0)
        before = Prefix(state, storage, Plus{}, static_cast<int>(blockIdx.x))(hits);
    else if (threadIdx.x == 0)
        state.SetInclusive(0, hits);
    if (threadIdx.x == 0) {
        *prefix = total[0] + before;
        if (blockIdx.x == gridDim.x - 1)
            total[1] = *prefix + hits;
    }
}

/* Appends to a list the values in a range, less the first number of the range, in the order of
 * their positions. */
template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    select_range(__grid_constant__ const Form f, typename Form::Word one,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Range<typename Form::Word> range, TileState state,
                 uint64_t *total, Number *list)
{
    __shared__ Stage<Form, Number> stage;
    __shared__ uint32_t of_warp[warps];
    __shared__ uint64_t prefix;
    __shared__ typename Prefix::TempStorage storage;
    const Values<Form> values(f, one, positions);
    const uint32_t hits = values.inside(range);
    const BlockPart part(__popc(hits), of_warp);
    stage.collect(part.begin, hits, [&](uint32_t i) { return values.value(i) - range.first; });
    if (threadIdx.x < 32)
        look_back(state, storage, part.all, total, &prefix);
    __syncthreads();
    stage.store(part.all, list + prefix);
}

/* Sets counts[r * gridDim.x + t] to the number of values of tile t in range r. */
template <typename Form>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    count_ranges(__grid_constant__ const Form f, typename Form::Word one,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Ranges<typename Form::Word> ranges, uint64_t *counts)
{
    __shared__ uint32_t of_range[tuning::split_ranks];
    if (threadIdx.x < ranges.count)
        of_range[threadIdx.x] = 0;
    __syncthreads();
    const Values<Form> values(f, one, positions);
#pragma unroll 1
    for (uint32_t r = 0; r < ranges.count; r++)
        atomicAdd(&of_range[r], __popc(values.inside(ranges.range[r])));
    __syncthreads();
    if (threadIdx.x < ranges.count)
        counts[uint64_t{threadIdx.x} * gridDim.x + blockIdx.x] = of_range[threadIdx.x];
}

/* Appends the numbers of the positions, from 0 on, to the lists of the ranges that contain their
 * values. begins[r * gridDim.x + t] is the place of the first number of range r in tile t. */
template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    split_ranges(__grid_constant__ const Form f, typename Form::Word one,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Ranges<typename Form::Word> ranges, const uint64_t *begins,
                 Number *lists)
{
    __shared__ Stage<Form, Number> stage;
    __shared__ uint32_t of_warp[warps];
    const Values<Form> values(f, one, positions);
    const uint64_t at = positions.of_thread<Form>();
#pragma unroll 1
    for (uint32_t r = 0; r < ranges.count; r++) {
        const uint32_t hits = values.inside(ranges.range[r]);
        const BlockPart part(__popc(hits), of_warp);
        stage.collect(part.begin, hits, [&](uint32_t i) { return at + i; });
        __syncthreads();
        stage.store(part.all, lists + begins[uint64_t{r} * gridDim.x + blockIdx.x]);
    }
}

} // namespace shuf::walk

#endif
