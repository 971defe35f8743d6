/* SPDX-License-Identifier: MIT
 *
 * The fingerprint of a part of a row of `primefold`, in one pass that stores no values. A thread
 * adds the terms of its values in registers. It computes groups as fold_rows.cuh does, and adds the
 * terms of unfinished values too. A list of the warp corrects these.
 */
#include "permute.cuh"

#include "fold_forms.cuh"
#include "shuf/fingerprint.h"
#include "simd/primefold.h"
#include "tuning.cuh"

#include <cub/block/block_reduce.cuh>

namespace shuf
{

namespace
{

constexpr int groups = tuning::fold_sum_groups;
constexpr uint32_t tile = fold_threads * group * groups, group_stride = fold_threads * group;

template <typename Form>
constexpr int blocks_per_sm = sizeof(typename Form::Word) == 4
                                  ? tuning::fold_sum_blocks_per_sm
                                  : tuning::fold_sum_wide_blocks_per_sm;

/* A wrong term: that of value number `at` of the part. */
template <typename Word> struct Wrong {
    uint32_t at;
    bool anew; /* x is wrong; else cycle walking goes on from x */
    Word x;
};

/* Replaces a wrong term in the sum. Values behind the end of the part have no right term. */
template <typename Form> struct Correct {
    const Form &f;
    const Rows &rows;
    const Part &part;
    uint64_t first, index; /* numbers of the first value of the part: in the row, in the result */
    unsigned long long &sum;

    __device__ __forceinline__ void operator()(const Wrong<typename Form::Word> &wrong) const
    {
        typename Form::Word x = wrong.x;
        sum -= shuf_fingerprint_term(index + wrong.at, x);
        if (wrong.at >= part.count)
            return;
        if (wrong.anew || !Form::is_right_past_n)
            x = cycle_walk(f, f.row, rows.position(first + wrong.at));
        else if ((x = f.settled(x)) >= f.n)
            x = cycle_walk(f, f.row, x);
        sum += shuf_fingerprint_term(index + wrong.at, x);
    }
};

/* Adds the values of a group that are unfinished, or not among the first `whole`, to the list. */
template <typename Form, typename List>
__device__ __forceinline__ void defer(const Form &f, List &list, uint32_t whole, uint32_t at,
                                      uint32_t met, const typename Form::Word (&x)[group])
{
    uint32_t which = unfinished(f, met, x);
    for (uint32_t c = 0; c < group && at + group > whole; c++)
        which |= at + c >= whole ? 1u << c : 0;
#pragma unroll 1
    for (; which != 0; which &= which - 1) {
        const uint32_t c = __ffs(static_cast<int>(which)) - 1;
        const auto word = c < 2 ? c == 0 ? x[0] : x[1] : c == 2 ? x[2] : x[3];
        list.add({at + c, !f.in_range(met) || at + c >= whole, word});
    }
}

template <typename Form>
__global__ void __launch_bounds__(fold_threads, blocks_per_sm<Form>)
    fold_sum(__grid_constant__ const Form f,
             __grid_constant__ const Steps<typename Form::Word> steps,
             __grid_constant__ const Rows rows, uint32_t tiles, uint64_t index,
             unsigned long long *total)
{
    using List = Deferred<Wrong<typename Form::Word>, groups * group>;
    using Reduce = cub::BlockReduce<unsigned long long, fold_threads>;
    __shared__ List lists[fold_threads / 32];
    __shared__ typename Reduce::TempStorage storage;
    List &list = lists[threadIdx.x / 32];
    const uint64_t first = uint64_t{blockIdx.x} * tiles * tile;
    const Part part(rows, first, tiles * tile);
    const uint32_t whole = part.count - (part.wraps ? 1 : 0);
    unsigned long long sum = 0;
    const Correct<Form> correct{f, rows, part, first, index + first, sum};
    list.start();
    const uint32_t mine = threadIdx.x * group;
    uint64_t place = (index + first + mine + 1) * SHUF_FINGERPRINT_STEP;
    typename Form::Word start = f.start(f.row, rows.offset + (first + mine) * rows.stride);
#pragma unroll 1
    for (uint32_t at = mine; at - mine < part.count; at += tile) {
        typename Form::Word x[groups][group];
#pragma unroll
        for (int g = 0; g < groups; g++) {
            spread(f, start, steps.one, x[g]);
            start = f.add(start, steps.leap);
        }
        uint32_t met = 0;
        f.evaluate_unchecked(f.row, x, met);
        bool below = true;
#pragma unroll
        for (int g = 0; g < groups; g++) {
            below = below && f.is_below(f.most(x[g]));
#pragma unroll
            for (uint32_t c = 0; c < group; c++)
                sum += shuf_fingerprint_mix(place + (g * group_stride + c) * SHUF_FINGERPRINT_STEP +
                                            x[g][c]);
        }
        place += tile * SHUF_FINGERPRINT_STEP;
        const bool ends = at - mine + tile > whole;
        const bool wrong = ends || !below || !f.in_range(met); /* `met` is of all groups */
        if (!__any_sync(0xffffffff, wrong))
            continue;
#pragma unroll
        for (int g = 0; g < groups && wrong; g++)
            defer(f, list, whole, at + g * group_stride, met, x[g]);
        list.finish_whole(correct);
    }
    list.finish(correct);
    sum = Reduce(storage).Sum(sum);
    if (threadIdx.x == 0)
        atomicAdd(total, sum);
}

} // namespace

bool primefold_sums(const shuf__permutation &p)
{
    return p.algorithm == SHUF_ALGORITHM_PRIMEFOLD && !p.window && p.rows == 1 &&
           shuf__bits(p.n - 1) > SHUF_PRIMEFOLD_MEDIUM_BITS;
}

cudaError_t primefold_sum_async(const shuf__permutation &p, uint64_t index, unsigned long long *sum,
                                cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(p.n);
    const cudaError_t e = cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    if (e != cudaSuccess)
        return e;
    return with_form<Direction::forward, true>(shape, [&](auto of) {
        using Form = typename decltype(of)::Form;
        const Form f = of.make(p, shape);
        const uint64_t most = blocks_for(p.count, tile) / tuning::fold_blocks;
        const uint64_t tiles = most < 1 ? 1 : most < tuning::fold_tiles ? most : tuning::fold_tiles;
        fold_sum<<<blocks_for(p.count, tile * tiles), fold_threads, 0, stream>>>(
            f, make_steps(f, shape.p, p.stride), make_rows_for<Form>(p, shape.p),
            static_cast<uint32_t>(tiles), index, sum);
        return cudaGetLastError();
    });
}

} // namespace shuf
