/* SPDX-License-Identifier: MIT
 *
 * The kernels of exchange.cu. A plan has two sides: the rank's own records, and its own places. A
 * side is a list of the numbers of these records or places. Each number has an *other end*: the
 * rank that gets the record, or the rank that sends the record for the place. The permutation gives
 * a number's key, by which the list is sorted.
 */
#ifndef SHUF__CUDA_EXCHANGE_SIDE_CUH
#define SHUF__CUDA_EXCHANGE_SIDE_CUH

#include "look_up.cuh"
#include "tuning.cuh"

namespace shuf
{

/* Finds the rank whose part contains a position. */
struct Ranks {
    const uint64_t *bounds; /* the first position of each rank; NULL: the parts are equal */
    uint64_t world;
    uint64_t larger_end;                 /* equal parts: the end of those with one position more */
    uint64_t larger, less;               /* the number of these parts, and the size of the others */
    uint64_t inverse_more, inverse_less; /* floor((2^64 - 1) / size), for each of the two sizes */

    __device__ __forceinline__ uint64_t equal_part(uint64_t position) const
    {
        if (position < larger_end)
            return divided(position, less + 1, inverse_more);
        return larger + divided(position - larger_end, less, inverse_less);
    }

    /* If empty ranks begin at the same position, the last one has it. */
    __device__ __forceinline__ uint64_t find(uint64_t position) const
    {
        uint64_t first = 0, count = world;
        if (!bounds)
            return equal_part(position);
        while (count > 1) {
            const uint64_t half = count / 2;
            first += bounds[first + half] <= position ? half : 0;
            count -= half;
        }
        return first;
    }
};

/* One side of a plan. Number i of the rank is at the position first + i. */
struct Side {
    uint64_t first, count;
    Ranks ranks;  /* among which the other ends are */
    bool by_rank; /* the key of a number is its other end, else the position there */
    unsigned key_bits;
};

/* A number of the list. The list is memory that a client may have mapped, so the code never trusts
 * its contents. */
template <typename Number>
__device__ __forceinline__ uint64_t read_number(const Side &side, const Number *list, uint64_t i)
{
    const uint64_t number = list[i];
    return number < side.count ? number : 0;
}

/* Writes a digit of each number's key. The numbers are 0, 1, ... or, unless `list` is NULL, those
 * of the list. */
template <typename Form, typename Number, typename Digit>
__global__ void __launch_bounds__(fold_threads, tuning::plan_blocks_per_sm)
    write_digits(__grid_constant__ const Form f, __grid_constant__ const Side side, unsigned shift,
                 const Number *list, Digit *digits)
{
    const uint64_t i = uint64_t{blockIdx.x} * fold_threads * group + threadIdx.x;
    uint64_t position[group];
    typename Form::Word x[group];
#pragma unroll
    for (int c = 0; c < group; c++) {
        const uint64_t at = i + c * fold_threads;
        const uint64_t number = at < side.count ? at : 0;
        position[c] = side.first + (list ? read_number(side, list, number) : number);
    }
    look_up_group(f, position, x);
#pragma unroll
    for (int c = 0; c < group; c++) {
        const uint64_t key = side.by_rank ? side.ranks.find(x[c]) : uint64_t{x[c]};
        if (i + c * fold_threads < side.count)
            digits[i + c * fold_threads] = static_cast<Digit>(key >> shift);
    }
}

/* Sets numbers[i] to the number whose key is keys[i]. f is the inverse of the side's function. */
template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads, tuning::plan_blocks_per_sm)
    write_numbers(__grid_constant__ const Form f, __grid_constant__ const Side side,
                  const uint32_t *keys, Number *numbers)
{
    const uint64_t i = uint64_t{blockIdx.x} * fold_threads * group + threadIdx.x;
    uint64_t position[group];
    typename Form::Word x[group];
#pragma unroll
    for (int c = 0; c < group; c++) {
        const uint64_t at = i + c * fold_threads;
        position[c] = keys[at < side.count ? at : 0];
    }
    look_up_group(f, position, x);
#pragma unroll
    for (int c = 0; c < group; c++)
        if (i + c * fold_threads < side.count)
            numbers[i + c * fold_threads] = static_cast<Number>(x[c] - side.first);
}

/* The numbers 0, 1, ... */
template <typename Number>
__global__ void __launch_bounds__(fold_threads) number_all(uint64_t count, Number *list)
{
    const uint64_t i = uint64_t{blockIdx.x} * fold_threads + threadIdx.x;
    if (i < count)
        list[i] = static_cast<Number>(i);
}

/* How many numbers of the sorted list have their other end on a rank below `rank`. */
template <typename Form, typename Number>
__device__ __forceinline__ uint64_t count_below(const Form &f, const Side &side, uint64_t rank,
                                                const Number *list)
{
    uint64_t low = 0, high = side.count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const uint64_t position = side.first + read_number(side, list, middle);
        if (side.ranks.find(cycle_walk(f, f.row, position)) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Two threads for each rank: one finds where its numbers begin, the other where they end. */
constexpr unsigned count_threads = 2;

template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads)
    count_ranks(__grid_constant__ const Form f, __grid_constant__ const Side side,
                const Number *list, Number *counts)
{
    const uint64_t thread = uint64_t{blockIdx.x} * fold_threads + threadIdx.x;
    const uint64_t rank = thread / count_threads;
    uint64_t below = 0;
    if (rank < side.ranks.world)
        below = count_below(f, side, rank + thread % count_threads, list);
    const uint64_t end = __shfl_xor_sync(0xffffffff, below, 1);
    if (rank < side.ranks.world && thread % count_threads == 0)
        counts[rank] = static_cast<Number>(end - below);
}

} // namespace shuf

#endif
