/* SPDX-License-Identifier: MIT
 *
 * See exchange.cuh. A plan has two sides. The rank's own records are sorted by their places in the
 * output. The rank's own places are sorted by the rank from which their records come. A side is a
 * list of numbers, each with a key that the permutation gives: the place, or the rank.
 *
 * CUB sorts a list by 16 bits of the keys at a time, from the lowest bits upwards. Each sort is
 * stable, so equal ranks keep the order of the places. Keys are evaluated again before each sort, so
 * a record never takes more than 16 bits for them, whatever n is. In the sorted list a search finds
 * the end of each rank.
 */
#include "exchange.cuh"

#include "fold_forms.cuh"
#include "host/primefold_shape.h"
#include "look_up.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <memory>
#include <new>

namespace shuf
{

namespace
{

using Digit = uint16_t;
constexpr int digit_bits = 16, pass_bits = 8; /* CUB sorts by at most pass_bits bits in a pass */
constexpr uint64_t alignment = 256;

/* Finds the rank whose part contains a position. */
struct Ranks {
    const uint64_t *bounds; /* the first position of each rank; NULL: the parts are equal */
    uint64_t world;
    uint64_t larger_end;    /* equal parts: the end of those with one position more */
    uint64_t larger, less;  /* the number of these parts, and the size of the others */
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
    Ranks ranks;  /* of the other ends: those that get the records, or those that send them */
    bool by_rank; /* the key of a number: the rank of its other end, or its position there */
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

/* Writes a digit of each number's key. With `begins` it first writes the numbers 0, 1, ... */
template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads, tuning::plan_blocks_per_sm)
    write_digits(__grid_constant__ const Form f, __grid_constant__ const Side side, bool begins,
                 unsigned shift, Number *list, Digit *digits)
{
    const uint64_t i = uint64_t{blockIdx.x} * fold_threads * group + threadIdx.x;
    uint64_t position[group];
    typename Form::Word x[group];
#pragma unroll
    for (int c = 0; c < group; c++) {
        const uint64_t at = i + c * fold_threads;
        uint64_t number = at < side.count ? at : 0;
        if (!begins)
            number = read_number(side, list, number);
        else if (at < side.count)
            list[at] = static_cast<Number>(at);
        position[c] = side.first + number;
    }
    look_up_group(f, position, x);
#pragma unroll
    for (int c = 0; c < group; c++) {
        const uint64_t key = side.by_rank ? side.ranks.find(x[c]) : uint64_t{x[c]};
        if (i + c * fold_threads < side.count)
            digits[i + c * fold_threads] = static_cast<Digit>(key >> shift);
    }
}

/* With a single rank there is nothing to sort. */
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

template <typename Form, typename Number>
__global__ void __launch_bounds__(fold_threads)
    count_ranks(__grid_constant__ const Form f, __grid_constant__ const Side side,
                const Number *list, Number *counts)
{
    const uint64_t rank = uint64_t{blockIdx.x} * fold_threads + threadIdx.x;
    if (rank < side.ranks.world)
        counts[rank] = static_cast<Number>(count_below(f, side, rank + 1, list) -
                                           count_below(f, side, rank, list));
}

/* ---- Memory ---- */

/* The arrays of the workspace. */
template <typename Number> struct Arrays {
    Digit *digits[2];
    Number *list; /* CUB moves the numbers between this list and the plan's */
    uint64_t *bounds[2];
    void *temporary;
    size_t temporary_bytes;
    uint64_t bytes; /* of all arrays */
};

template <typename Number>
cudaError_t sort(const Arrays<Number> &a, size_t bytes, cub::DoubleBuffer<Digit> &digits,
                 cub::DoubleBuffer<Number> &list, uint64_t count, int bits, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(a.temporary, bytes, digits, list,
                                           static_cast<Number>(count), 0, bits, stream);
}

/* The scratch memory of CUB for the sorts of a list. 0 if the device fails; the sorts then fail
 * too. */
template <typename Number> size_t temporary_for(uint64_t count)
{
    cub::DoubleBuffer<Digit> digits;
    cub::DoubleBuffer<Number> list;
    size_t most = 0, bytes = 0;
    for (int bits = pass_bits; bits <= digit_bits; bits += pass_bits)
        if (cub::DeviceRadixSort::SortPairs(nullptr, bytes, digits, list,
                                            static_cast<Number>(count), 0, bits) == cudaSuccess)
            most = std::max(most, bytes);
    return most;
}

uint64_t records_of(const shuf__plan &plan, bool output)
{
    return shuf__plan_part(&plan, plan.rank, output).count;
}

template <typename Number> Arrays<Number> lay_out(const shuf__plan &plan, char *memory)
{
    Arrays<Number> a{};
    char *at = memory;
    const auto take = [&at](uint64_t count, size_t size) {
        char *here = at;
        at += (count * size + alignment - 1) / alignment * alignment;
        return here;
    };
    const uint64_t in = records_of(plan, false), out = records_of(plan, true);
    const uint64_t most = std::max(in, out), ranks = plan.input || plan.output ? plan.world : 0;
    for (int k = 0; k < 2; k++) {
        a.digits[k] = reinterpret_cast<Digit *>(take(most, sizeof(Digit)));
        a.bounds[k] = reinterpret_cast<uint64_t *>(take(ranks, sizeof(uint64_t)));
    }
    a.list = reinterpret_cast<Number *>(take(most, sizeof(Number)));
    a.temporary_bytes = std::max(temporary_for<Number>(in), temporary_for<Number>(out));
    a.temporary = take(a.temporary_bytes, 1);
    a.bytes = static_cast<uint64_t>(at - memory);
    return a;
}

/* ---- A side ---- */

/* Whether a list of sizes has the sizes of equal parts. */
bool is_equal(const shuf__plan &plan, const uint64_t *sizes)
{
    for (uint64_t r = 0; sizes && r < plan.world; r++)
        if (sizes[r] != shuf__equal_part(plan.permutation.n, plan.world, r).count)
            return false;
    return true;
}

/* Copies the first position of each rank to `there`. */
cudaError_t copy_bounds(const shuf__plan &plan, const uint64_t *sizes, uint64_t *there,
                        cudaStream_t stream)
{
    const std::unique_ptr<uint64_t[]> bounds(new (std::nothrow) uint64_t[plan.world]);
    if (!bounds)
        return cudaErrorMemoryAllocation;
    for (uint64_t r = 0, sum = 0; r < plan.world; sum += sizes[r++])
        bounds[r] = sum;
    return cudaMemcpyAsync(there, bounds.get(), plan.world * sizeof bounds[0],
                           cudaMemcpyHostToDevice, stream);
}

cudaError_t find_ranks(const shuf__plan &plan, bool output, uint64_t *bounds, Ranks *ranks,
                       cudaStream_t stream)
{
    const uint64_t *sizes = output && plan.output ? plan.output : plan.input;
    const uint64_t less = plan.permutation.n / plan.world, larger = plan.permutation.n % plan.world;
    *ranks = {nullptr, plan.world, larger * (less + 1), larger, less, ~uint64_t{0} / (less + 1),
              less ? ~uint64_t{0} / less : 0};
    if (is_equal(plan, sizes))
        return cudaSuccess;
    ranks->bounds = bounds;
    return copy_bounds(plan, sizes, bounds, stream);
}

/* Where the lists of a plan begin. */
template <typename Number> struct Lists {
    Number *counts[2], *numbers[2]; /* of the input, and of the output */

    Lists(const shuf__plan &plan, void *out)
    {
        counts[0] = static_cast<Number *>(out);
        counts[1] = counts[0] + plan.world;
        numbers[0] = counts[1] + plan.world;
        numbers[1] = numbers[0] + records_of(plan, false);
    }
};

struct Stop {
    const shuf__computation &computation;
    bool *cancelled;

    bool operator()() const
    {
        *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
        return *cancelled;
    }
};

/* Sorts the numbers of a side by 16 bits of their keys after the other. */
template <typename Form, typename Number>
cudaError_t sort_side(const Form &f, const Side &side, const Arrays<Number> &a, Number *numbers,
                      const Stop &stop, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    cub::DoubleBuffer<Digit> digits(a.digits[0], a.digits[1]);
    cub::DoubleBuffer<Number> list(numbers, a.list);
    const unsigned passes = (side.key_bits + pass_bits - 1) / pass_bits;
    list.selector = passes % 2; /* then the last pass writes to the plan, unless the list is small */
    for (unsigned shift = 0; e == cudaSuccess && shift < side.key_bits && !stop();
         shift += digit_bits) {
        const auto bits = static_cast<int>(std::min<unsigned>(side.key_bits - shift, digit_bits));
        write_digits<<<blocks_for(side.count, fold_threads * group), fold_threads, 0, stream>>>(
            f, side, shift == 0, shift, list.Current(), digits.Current());
        e = cudaGetLastError();
        if (e == cudaSuccess)
            e = sort(a, a.temporary_bytes, digits, list, side.count, bits, stream);
    }
    if (e == cudaSuccess && list.Current() != numbers)
        e = cudaMemcpyAsync(numbers, list.Current(), side.count * sizeof(Number),
                            cudaMemcpyDeviceToDevice, stream);
    return e;
}

template <typename Form, typename Number>
cudaError_t fill_side(const Form &f, const Side &side, const Arrays<Number> &a, Number *numbers,
                      Number *counts, const Stop &stop, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;
    if (side.key_bits == 0)
        number_all<<<blocks_for(side.count, fold_threads), fold_threads, 0, stream>>>(side.count,
                                                                                      numbers);
    else
        e = sort_side(f, side, a, numbers, stop, stream);
    if (e != cudaSuccess || *stop.cancelled)
        return e;
    count_ranks<<<blocks_for(side.ranks.world, fold_threads), fold_threads, 0, stream>>>(
        f, side, numbers, counts);
    return cudaGetLastError();
}

template <Direction direction, typename Number>
cudaError_t make_side(const shuf__permutation &p, const Side &side, const Arrays<Number> &a,
                      Number *numbers, Number *counts, const Stop &stop, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(p.n);
    if (side.count == 0)
        return cudaMemsetAsync(counts, 0, side.ranks.world * sizeof *counts, stream);
    return with_form<direction>(shape, [&](auto of) {
        return fill_side(of.make(p, shape), side, a, numbers, counts, stop, stream);
    });
}

/* ---- The plan ---- */

template <typename Number>
cudaError_t make_plan(const shuf__plan &plan, void *out, void *workspace, const Stop &stop,
                      cudaStream_t stream)
{
    const shuf__permutation &p = plan.permutation;
    const Arrays<Number> a = lay_out<Number>(plan, static_cast<char *>(workspace));
    const Lists<Number> lists(plan, out);
    for (int output = 0; output < 2; output++) {
        const shuf__range part = shuf__plan_part(&plan, plan.rank, output);
        Side side{part.first, part.count, {}, output != 0,
                  shuf__bits(output ? plan.world - 1 : p.n - 1)};
        cudaError_t e = find_ranks(plan, !output, a.bounds[output], &side.ranks, stream);
        if (e != cudaSuccess)
            return e;
        const bool forward = (output != 0) != plan.inverse;
        e = forward ? make_side<Direction::forward>(p, side, a, lists.numbers[output],
                                                    lists.counts[output], stop, stream)
                    : make_side<Direction::inverse>(p, side, a, lists.numbers[output],
                                                    lists.counts[output], stop, stream);
        if (e != cudaSuccess || *stop.cancelled)
            return e;
    }
    return cudaSuccess;
}

/* Makes a small plan on the host, and copies it. */
cudaError_t make_here(const shuf__simd_ops *simd, const shuf__computation &computation, void *out,
                      cudaStream_t stream, bool *cancelled)
{
    const uint64_t bytes = shuf__request_shape(&computation.request).bytes;
    const uint64_t needed = shuf__exchange_bytes(1, &computation.request.plan);
    const std::unique_ptr<uint64_t[]> plan(new (std::nothrow) uint64_t[(bytes + 7) / 8]);
    const std::unique_ptr<uint64_t[]> beside(new (std::nothrow) uint64_t[(needed + 7) / 8]);
    if (!plan || !beside)
        return cudaErrorMemoryAllocation;
    shuf__computation here = computation;
    shuf__block workspace{};
    workspace.memory = beside.get();
    workspace.bytes = needed;
    here.workspace = &workspace;
    *cancelled = !shuf__host_exchange(simd, 1, &here, plan.get());
    return *cancelled ? cudaSuccess
                      : cudaMemcpyAsync(out, plan.get(), bytes, cudaMemcpyHostToDevice, stream);
}

} // namespace

uint64_t exchange_bytes(const shuf__request &request)
{
    return shuf__dtype_bytes(request.dtype) == 4 ? lay_out<uint32_t>(request.plan, nullptr).bytes
                                                 : lay_out<uint64_t>(request.plan, nullptr).bytes;
}

cudaError_t exchange_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                           void *out, cudaStream_t stream, bool *cancelled)
{
    const shuf__request &request = computation.request;
    const shuf__block *workspace = computation.workspace;
    const Stop stop{computation, cancelled};
    if (request.plan.permutation.n <= SHUF_PRIMEFOLD_EXACT)
        return make_here(simd, computation, out, stream, cancelled);
    if (!workspace || workspace->bytes < exchange_bytes(request))
        return cudaErrorInvalidValue;
    return shuf__dtype_bytes(request.dtype) == 4
               ? make_plan<uint32_t>(request.plan, out, workspace->memory, stop, stream)
               : make_plan<uint64_t>(request.plan, out, workspace->memory, stop, stream);
}

} // namespace shuf
