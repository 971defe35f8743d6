/* SPDX-License-Identifier: MIT
 *
 * The two lists of a plan without sorts, for few ranks: see exchange.cuh. Values of the permutation
 * at neighbouring positions are fast, so these methods evaluate positions in ascending order, and
 * the lists need no other order:
 *
 *   order   evaluates all positions of the output of all ranks, and selects the values that are
 *           records of this rank. Its time depends on n.
 *   places  evaluates the rank's own places, and splits them by the rank that sends the record.
 *           Its time depends on the number of ranks, at most tuning::split_ranks.
 */
#include "exchange.cuh"

#include "exchange_walk.cuh"
#include "scratch.cuh"

#include <algorithm>

namespace shuf
{

namespace
{

using walk::is_cancelled;
using walk::Positions;
using walk::Range;
using walk::Ranges;
using walk::with_values;

shuf__range own_part(const shuf__plan &plan, bool output)
{
    return shuf__plan_part(&plan, plan.rank, output);
}

/* Whether the kernels use words of 32 bits. */
bool has_narrow_words(const shuf__plan &plan)
{
    return shuf__primefold_shape(plan.permutation.n).p >> 32 == 0;
}

/* The most positions of a launch that selects. */
uint64_t launch_positions(const shuf__plan &plan)
{
    return std::min(plan.permutation.n, tuning::walk_positions);
}

/* The totals before and after each launch. */
uint64_t totals_bytes(const shuf__plan &plan)
{
    const uint64_t launches = plan.permutation.n / tuning::walk_positions + 2;
    return Workspace::rounded(launches * sizeof(uint64_t));
}

size_t state_bytes(uint64_t tiles)
{
    size_t bytes = 0;
    walk::TileState::AllocationSize(static_cast<int>(tiles), bytes);
    return bytes;
}

/* The counts of all runs and ranks. */
uint64_t split_counts(const shuf__plan &plan)
{
    const uint64_t tiles = blocks_for(own_part(plan, true).count, walk::split_tile);
    return tiles * walk::warps * plan.world;
}

uint64_t counts_bytes(const shuf__plan &plan)
{
    return Workspace::rounded(split_counts(plan) * sizeof(uint64_t));
}

template <typename Word> Range<Word> range_of(const shuf__range &part)
{
    return {static_cast<Word>(part.first), static_cast<Word>(part.count)};
}

template <typename Word> Ranges<Word> sources_of(const shuf__plan &plan)
{
    Ranges<Word> ranges{{}, static_cast<uint32_t>(plan.world)};
    for (uint32_t r = 0; r < ranges.count; r++)
        ranges.range[r] = range_of<Word>(shuf__plan_part(&plan, r, false));
    return ranges;
}

} // namespace

bool selects_order(const shuf__plan &plan)
{
    const uint64_t most = has_narrow_words(plan) ? tuning::select_most
                          : plan.inverse         ? tuning::select_wide_inverse_most
                                                 : tuning::select_wide_most;
    return plan.permutation.n / most < own_part(plan, false).count;
}

bool splits_places(const shuf__plan &plan)
{
    return plan.world <= tuning::split_ranks;
}

uint64_t select_bytes(const shuf__plan &plan)
{
    return totals_bytes(plan) +
           state_bytes(blocks_for(launch_positions(plan), walk::select_tile<uint64_t>));
}

uint64_t split_bytes(const shuf__plan &plan)
{
    return counts_bytes(plan) + scan_bytes(split_counts(plan));
}

template <typename Number>
cudaError_t select_order(const shuf__computation &computation, void *scratch, Number *order,
                         cudaStream_t stream, bool *cancelled)
{
    const shuf__plan &plan = computation.request.plan;
    auto *total = static_cast<uint64_t *>(scratch);
    void *const states = static_cast<char *>(scratch) + totals_bytes(plan);
    cudaError_t e = cudaMemsetAsync(total, 0, sizeof *total, stream);
    if (e != cudaSuccess)
        return e;
    return with_values(plan, [&](const auto &f, auto step) {
        using Form = std::decay_t<decltype(f)>;
        const auto own = range_of<typename Form::Word>(own_part(plan, false));
        const uint64_t n = plan.permutation.n, most = launch_positions(plan);
        for (uint64_t at = 0; at < n && e == cudaSuccess && !is_cancelled(computation, cancelled);
             at += most, total++) {
            const Positions positions{at, std::min(most, n - at)};
            const unsigned tiles = blocks_for(positions.count, walk::select_tile<Number>);
            walk::TileState state;
            e = state.Init(static_cast<int>(tiles), states, state_bytes(tiles));
            if (e != cudaSuccess)
                return e;
            walk::begin_tiles<<<blocks_for(tiles, fold_threads), fold_threads, 0, stream>>>(
                state, static_cast<int>(tiles));
            walk::select_range<<<tiles, fold_threads, 0, stream>>>(f, step, positions, own, state,
                                                                   total, order);
            e = cudaGetLastError();
        }
        return e;
    });
}

template <typename Number>
cudaError_t split_places(const shuf__computation &computation, void *scratch, Number *places,
                         cudaStream_t stream, bool *cancelled)
{
    const shuf__plan &plan = computation.request.plan;
    const shuf__range own = own_part(plan, true);
    const Positions positions{own.first, own.count};
    auto *counts = static_cast<uint64_t *>(scratch);
    void *const temporary = static_cast<char *>(scratch) + counts_bytes(plan);
    if (is_cancelled(computation, cancelled))
        return cudaSuccess;
    return with_values(plan, [&](const auto &f, auto step) {
        using Form = std::decay_t<decltype(f)>;
        const auto sources = sources_of<typename Form::Word>(plan);
        const unsigned tiles = blocks_for(own.count, walk::split_tile);
        walk::count_ranges<<<tiles, fold_threads, 0, stream>>>(f, step, positions, sources, counts);
        const uint64_t all = split_counts(plan);
        cudaError_t e = cudaGetLastError();
        if (e == cudaSuccess)
            e = sum_before(counts, all, temporary, scan_bytes(all), stream);
        if (e != cudaSuccess || is_cancelled(computation, cancelled))
            return e;
        walk::split_ranges<<<tiles, fold_threads, 0, stream>>>(f, step, positions, sources, counts,
                                                               places);
        return cudaGetLastError();
    });
}

template cudaError_t select_order(const shuf__computation &, void *, uint32_t *, cudaStream_t,
                                  bool *);
template cudaError_t select_order(const shuf__computation &, void *, uint64_t *, cudaStream_t,
                                  bool *);
template cudaError_t split_places(const shuf__computation &, void *, uint32_t *, cudaStream_t,
                                  bool *);
template cudaError_t split_places(const shuf__computation &, void *, uint64_t *, cudaStream_t,
                                  bool *);

} // namespace shuf
