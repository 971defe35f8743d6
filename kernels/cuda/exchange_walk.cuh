/* SPDX-License-Identifier: MIT
 *
 * The kernels of exchange_few.cu. Hits stay in the order of their positions. select_range() finds
 * its place in the list by decoupled look-back, as scan.cuh does. A tile is large, because the
 * look-back of many tiles takes longer than their evaluation. split_ranges() reads its places from
 * the counts of count_ranges(), because the list of a rank begins after those of the ranks before
 * it.
 */
#ifndef SHUF__CUDA_EXCHANGE_WALK_CUH
#define SHUF__CUDA_EXCHANGE_WALK_CUH

#include "walk.cuh"

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cuda/std/functional>

namespace shuf::walk
{

using TileState = cub::ScanTileState<uint32_t>;
using Plus = ::cuda::std::plus<>;
using Prefix = cub::TilePrefixCallbackOp<uint32_t, Plus, TileState>;

/* The positions of a warp, and of a block. A warp that selects keeps its hits in shared memory. */
template <typename Number>
constexpr uint32_t select_run = tuning::walk_run * sizeof(uint32_t) / sizeof(Number);
template <typename Number> constexpr uint32_t select_tile = warps *select_run<Number>;
constexpr uint32_t split_tile = warps * tuning::walk_run;

/* Stores a number of 32 or 64 bits if `is_hit`. The compiler would make a branch, which takes
 * longer than the store. */
#define SHUF__STORE_BITS(space, bits, pointer, value, is_hit, to, number)            \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %0, 0;\n\t"                   \
                 "@p st." space ".u" bits " [%1], %2;\n\t}" ::"r"(uint32_t{is_hit}), \
                 pointer(to), value(number)                                          \
                 : "memory")
#define SHUF__STORE_HIT(space, pointer, is_hit, to, number)                        \
    if constexpr (sizeof(number) == sizeof(uint32_t))                              \
        SHUF__STORE_BITS(space, "32", pointer, "r", is_hit, to, uint32_t(number)); \
    else                                                                           \
        SHUF__STORE_BITS(space, "64", pointer, "l", is_hit, to, uint64_t(number))

/* A list in shared memory to which a warp appends its hits. */
template <typename Number> struct Stage {
    uint32_t end; /* address */

    __device__ __forceinline__ explicit Stage(Number *list)
        : end(static_cast<uint32_t>(__cvta_generic_to_shared(list)))
    {
    }

    __device__ __forceinline__ void append(const Hit &hit, Number number)
    {
        const uint32_t to = end + hit.before * sizeof(Number);
        SHUF__STORE_HIT("shared", "r", hit.is_hit, to, number);
        end += hit.all * sizeof(Number);
    }
};

/* The hits of a block, warp by warp. All threads wait in the constructor. */
struct BlockPart {
    uint32_t begin, all; /* the place of the warp's first hit; the hits of all warps */

    __device__ __forceinline__ BlockPart(uint32_t hits, uint32_t (&of_warp)[warps])
    {
        const uint32_t warp = threadIdx.x / lanes;
        if (lane() == 0)
            of_warp[warp] = hits;
        __syncthreads();
        begin = all = 0;
#pragma unroll
        for (uint32_t w = 0; w < warps; w++) {
            begin += w < warp ? of_warp[w] : 0;
            all += of_warp[w];
        }
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
 * their positions. `step` is the distance between the starts of every 32nd position. */
template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    select_range(__grid_constant__ const Form f, typename Form::Word step,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Range<typename Form::Word> range, TileState state,
                 uint64_t *total, Number *list)
{
    constexpr uint32_t run = select_run<Number>;
    __shared__ Number lists[warps][run];
    __shared__ uint32_t of_warp[warps];
    __shared__ uint64_t prefix;
    __shared__ typename Prefix::TempStorage storage;
    Number *const mine = lists[threadIdx.x / lanes];
    Stage<Number> staged(mine);
    const uint32_t begin = staged.end;
    Walk<Form> walk(f, step, positions, run);
    walk.for_turns(run, [&] {
        walk.for_hits(range, [&](const Hit &hit, int, auto number) {
            staged.append(hit, static_cast<Number>(number));
        });
    });
    const uint32_t hits = (staged.end - begin) / sizeof(Number);
    const BlockPart part(hits, of_warp);
    if (threadIdx.x < lanes)
        look_back(state, storage, part.all, total, &prefix);
    __syncthreads();
    Number *const out = list + prefix + part.begin;
#pragma unroll 4
    for (uint32_t i = lane(); i < hits; i += lanes)
        out[i] = mine[i];
}

__device__ __forceinline__ uint32_t sum_of_lanes(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(all_lanes, value);
#else
#pragma unroll
    for (uint32_t distance = lanes / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(all_lanes, value, distance);
    return value;
#endif
}

/* Sets counts[r * runs + k] to the number of values of run k in range r, of all runs of the
 * launch. */
template <typename Form>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    count_ranges(__grid_constant__ const Form f, typename Form::Word step,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Ranges<typename Form::Word> ranges, uint64_t *counts)
{
    uint32_t own = 0; /* lane r counts the values in range r */
    Walk<Form> walk(f, step, positions, tuning::walk_run);
    walk.for_turns(tuning::walk_run, [&] {
#pragma unroll 1
        for (uint32_t r = 0; r < ranges.count; r++) {
            const uint32_t all = sum_of_lanes(walk.count(ranges.range[r]));
            own += lane() == r ? all : 0;
        }
    });
    if (lane() < ranges.count)
        counts[uint64_t{lane()} * gridDim.x * warps + run_of_warp()] = own;
}

/* Appends the numbers of the positions, from 0 on, to the lists of the ranges that contain their
 * values. begins[r * runs + k] is the place of the first number of range r in run k. */
template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    split_ranges(__grid_constant__ const Form f, typename Form::Word step,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Ranges<typename Form::Word> ranges, const uint64_t *begins,
                 Number *lists)
{
    static_assert(tuning::split_ranks <= lanes);
    uint64_t end = 0; /* lane r has the address of the end of list r */
    if (lane() < ranges.count)
        end = reinterpret_cast<uint64_t>(
            lists + begins[uint64_t{lane()} * gridDim.x * warps + run_of_warp()]);
    Walk<Form> walk(f, step, positions, tuning::walk_run);
    walk.for_turns(tuning::walk_run, [&] {
#pragma unroll 1
        for (uint32_t r = 0; r < ranges.count; r++) {
            const uint64_t to = __shfl_sync(all_lanes, end, static_cast<int>(r));
            uint32_t hits = 0;
            walk.for_hits(ranges.range[r], [&](const Hit &hit, int i, auto) {
                const auto number = static_cast<Number>(walk.at + i * lanes);
                const uint32_t place = hits + hit.before;
                SHUF__STORE_HIT("global", "l", hit.is_hit, to + uint64_t{place} * sizeof(Number),
                                number);
                hits += hit.all;
            });
            end += lane() == r ? hits * sizeof(Number) : 0;
        }
    });
}

#undef SHUF__STORE_HIT
#undef SHUF__STORE_BITS

} // namespace shuf::walk

#endif
