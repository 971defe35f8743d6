/* SPDX-License-Identifier: MIT
 *
 * A walk over the values of a permutation at neighbouring positions. A warp evaluates a run of
 * positions. In a turn each lane has every 32nd position, so value number i of all lanes belongs to
 * 32 neighbours. A ballot then tells each lane how many hits come before its own.
 */
#ifndef SHUF__CUDA_WALK_CUH
#define SHUF__CUDA_WALK_CUH

#include "backend.h"
#include "fold_forms.cuh"
#include "simd/primefold.h"
#include "tuning.cuh"

namespace shuf::walk
{

constexpr uint32_t lanes = 32, all_lanes = 0xffffffff;
constexpr uint32_t warps = fold_threads / lanes;

template <typename Form>
constexpr int groups = sizeof(typename Form::Word) == 4 ? tuning::walk_groups
                                                        : tuning::walk_wide_groups;
template <typename Form>
constexpr int blocks_per_sm = sizeof(typename Form::Word) == 4 ? tuning::walk_blocks_per_sm
                                                               : tuning::walk_wide_blocks_per_sm;
template <typename Form> constexpr uint32_t each = groups<Form> *group; /* values of a lane */
template <typename Form> constexpr uint32_t turn = lanes *each<Form>;

/* The step of a lane, over 32 positions. */
template <typename Form>
typename Form::Word step_of(const Form &f, const shuf_primefold_shape &shape)
{
    return make_steps(f, shape.p, lanes).one;
}

/* Calls use(f, step) with the form of the values at the places of a plan, and with the step over
 * `lanes` positions. */
template <typename Use> cudaError_t with_values(const shuf__plan &plan, Use use)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(plan.permutation.n);
    const auto with = [&](auto of) {
        const auto f = of.make(plan.permutation, shape);
        return use(f, step_of(f, shape));
    };
    return plan.inverse ? with_form<Direction::inverse>(shape, with)
                        : with_form<Direction::forward>(shape, with);
}

/* Asks whether the computation of a plan is cancelled, and notes the answer. */
inline bool is_cancelled(const shuf__computation &computation, bool *cancelled)
{
    *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
    return *cancelled;
}

/* The positions that a launch evaluates. */
struct Positions {
    uint64_t first, count;
};

/* Neighbouring values of the permutation: the records of a rank. */
template <typename Word> struct Range {
    Word first, count;
};

template <typename Word> struct Ranges {
    Range<Word> range[tuning::split_ranks];
    uint32_t count;
};

__device__ __forceinline__ uint32_t lane()
{
    return threadIdx.x % lanes;
}

/* The number of the warp's run. */
__device__ __forceinline__ uint64_t run_of_warp()
{
    return uint64_t{blockIdx.x} * warps + threadIdx.x / lanes;
}

/* Value number i of a lane, for all lanes of a warp. */
struct Hit {
    bool is_hit;     /* this lane's value is in the range */
    uint32_t before; /* the number of hits in lanes before this one */
    uint32_t all;    /* in the warp */
};

/* The values of a lane in a run, turn by turn. */
template <typename Form> struct Walk {
    using Word = typename Form::Word;
    const Form &f;
    const Word step; /* to the start of the lane's next position */
    uint64_t at;     /* number of the lane's first position in this turn */
    uint64_t first;  /* position number 0 */
    int left;        /* positions from `at` to the end of the launch, if few */
    Word start;
    Word x[groups<Form>][group];

    __device__ __forceinline__ Walk(const Form &f, Word step, const Positions &positions,
                                    uint32_t run)
        : f(f), step(step), at(run_of_warp() * run + lane()), first(positions.first)
    {
        const uint64_t rest = at < positions.count ? positions.count - at : 0;
        left = static_cast<int>(rest < run ? rest : run);
        start = f.start(f.row, first + (rest ? at : 0));
    }

    /* Computes the values of this turn. */
    __device__ __forceinline__ void evaluate()
    {
#pragma unroll
        for (int g = 0; g < groups<Form>; g++)
#pragma unroll
            for (int c = 0; c < group; c++) {
                x[g][c] = f.first(start);
                start = f.add(start, step);
            }
        uint32_t met = 0;
        f.evaluate_unchecked(f.row, x, met);
        uint32_t again = unfinished_values(met);
        if (left <= static_cast<int>(turn<Form> - lanes))
            again &= blank();
        repair(again, Form::is_right_past_n && f.in_range(met));
    }

    /* A bit for each value that must be computed again. */
    __device__ __forceinline__ uint32_t unfinished_values(uint32_t met) const
    {
        uint32_t most = 0, which = 0;
#pragma unroll
        for (int g = 0; g < groups<Form>; g++)
            most = max(most, f.most(x[g]));
        if (f.in_range(met) && f.is_below(most))
            return 0;
#pragma unroll
        for (int g = 0; g < groups<Form>; g++)
            which |= unfinished(f, met, x[g]) << g * group;
        return which;
    }

    /* Calls use() for each turn of a run, with the values of this turn. */
    template <typename Use> __device__ __forceinline__ void for_turns(uint32_t run, Use use)
    {
#pragma unroll 1
        for (uint32_t done = 0; done < run; done += turn<Form>) {
            evaluate();
            use();
            at += turn<Form>;
            left -= turn<Form>;
        }
    }

    /* Gives positions past the end a value that no range has. Returns a bit for each other one. */
    __device__ __forceinline__ uint32_t blank()
    {
        uint32_t valid = 0;
#pragma unroll
        for (int i = 0; i < static_cast<int>(each<Form>); i++) {
            const bool is_valid = i * static_cast<int>(lanes) < left;
            x[i / group][i % group] = is_valid ? value(i) : ~Word{0};
            valid |= is_valid ? 1u << i : 0;
        }
        return valid;
    }

    /* Computes single values again. If the values are right, their cycle walks go on. */
    __device__ __forceinline__ void repair(uint32_t again, bool right)
    {
#pragma unroll 1
        for (; again != 0; again &= again - 1) {
            const int which = __ffs(static_cast<int>(again)) - 1;
            auto y = static_cast<Word>(first + at + which * lanes);
            if (right) {
#pragma unroll
                for (int i = 0; i < static_cast<int>(each<Form>); i++)
                    y = i == which ? f.settled(value(i)) : y;
            }
            if (!right || y >= f.n)
                y = cycle_walk(f, f.row, y);
#pragma unroll
            for (int i = 0; i < static_cast<int>(each<Form>); i++)
                x[i / group][i % group] = i == which ? y : value(i);
        }
    }

    __device__ __forceinline__ Word value(int i) const
    {
        return x[i / group][i % group];
    }

    /* How many values of this lane are in the range. */
    __device__ __forceinline__ uint32_t count(const Range<Word> &range) const
    {
        uint32_t hits = 0;
#pragma unroll
        for (int i = 0; i < static_cast<int>(each<Form>); i++)
            hits += static_cast<Word>(value(i) - range.first) < range.count ? 1 : 0;
        return hits;
    }

    /* Calls put(hit, i, number) for each i. `number` is value i of this lane, less the first value
     * of the range. */
    template <typename Put>
    __device__ __forceinline__ void for_hits(const Range<Word> &range, Put put) const
    {
        const uint32_t lanes_before = (1u << lane()) - 1;
#pragma unroll
        for (int i = 0; i < static_cast<int>(each<Form>); i++) {
            const Word number = value(i) - range.first;
            const bool is_hit = number < range.count;
            const uint32_t hits = __ballot_sync(all_lanes, is_hit);
            put(Hit{is_hit, static_cast<uint32_t>(__popc(hits & lanes_before)),
                    static_cast<uint32_t>(__popc(hits))},
                i, number);
        }
    }
};

} // namespace shuf::walk

#endif
