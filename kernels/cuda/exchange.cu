/* SPDX-License-Identifier: MIT
 *
 * See exchange.cuh. The rank's own records are sorted by their places in the output. The rank's own
 * places are sorted by the rank from which their records come. For few ranks exchange_few.cu does
 * this without sorts. Otherwise there are two methods:
 *
 *   by keys    for places below 2^32: CUB sorts the places alone. The inverse of the permutation
 *              then gives the number of each place.
 *   by digits  for other places, and for ranks: CUB sorts the numbers by 16 bits of their keys at a
 *              time, from the lowest bits upwards. The keys are evaluated again before each sort.
 *
 * So both methods take 8 bytes for each number, or 12 if numbers have 64 bits. Sorts by digits are
 * stable, so the places of a rank stay in ascending order. In the sorted list a search finds the
 * end of each rank.
 *
 * A plan has two sides: the rank's own records, and its own places. A side is a list of the numbers
 * of these records or places. Each number has an *other end*: the rank that gets the record, or the
 * rank that sends the record for the place. The permutation gives a number's key, by which the list
 * is sorted.
 */
#include "exchange.cuh"

#include "fold_forms.cuh"
#include "scratch.cuh"
#include "simd/primefold.h"
#include "tuning.cuh"

#include <algorithm>
#include <memory>
#include <new>

namespace shuf
{

namespace
{

constexpr unsigned key_bits = 32, digit_bits = 16;
constexpr unsigned pass_bits = 8; /* CUB sorts by so many bits in a pass */

/* ---- The kernels ---- */

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

/* ---- Memory ---- */

/* The arrays of the workspace. */
template <typename Number> struct Arrays {
    Key *keys[2]; /* in the same memory as digits and list */
    Digit *digits[2];
    Number *list; /* CUB moves the numbers between this list and the plan's */
    uint64_t *bounds[2];
    void *temporary;
    size_t temporary_bytes;
    uint64_t bytes; /* of all arrays */
};

uint64_t records_of(const shuf__plan &plan, bool output)
{
    return shuf__plan_part(&plan, plan.rank, output).count;
}

template <typename Number>
Arrays<Number> lay_out(const shuf__plan &plan, const Methods &methods, void *memory)
{
    Arrays<Number> a{};
    Workspace workspace(memory);
    const uint64_t in = records_of(plan, false), out = records_of(plan, true);
    const bool selects = methods.selects_order, splits = methods.splits_places;
    const uint64_t most = std::max(selects ? 0 : in, splits ? 0 : out);
    const uint64_t ranks = plan.input || plan.output ? plan.world : 0;
    for (int k = 0; k < 2; k++)
        a.digits[k] = workspace.take<Digit>(most);
    a.list = workspace.take<Number>(most);
    a.keys[0] = reinterpret_cast<Key *>(memory);
    a.keys[1] = a.keys[0] + most;
    for (int k = 0; k < 2; k++)
        a.bounds[k] = workspace.take<uint64_t>(ranks);
    a.temporary_bytes = std::max(selects ? select_bytes(plan) : sort_bytes(static_cast<Number>(in)),
                                 splits ? split_bytes(plan) : sort_bytes(static_cast<Number>(out)));
    a.temporary = workspace.take<char>(a.temporary_bytes);
    a.bytes = workspace.bytes();
    return a;
}

/* ---- The ranks of a side ---- */

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
    *ranks = {nullptr,
              plan.world,
              larger * (less + 1),
              larger,
              less,
              ~uint64_t{0} / (less + 1),
              less ? ~uint64_t{0} / less : 0};
    if (is_equal(plan, sizes))
        return cudaSuccess;
    ranks->bounds = bounds;
    return copy_bounds(plan, sizes, bounds, stream);
}

/* ---- The sorts ---- */

/* The memory and the computation of a side's sorts. */
template <typename Number> struct Work {
    const shuf__computation &computation;
    const Methods &methods;
    const Side &side;
    const Arrays<Number> &arrays;
    Number *numbers, *counts; /* of the plan */
    cudaStream_t stream;
    bool *cancelled;

    bool is_cancelled() const
    {
        *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
        return *cancelled;
    }

    unsigned blocks(uint64_t each) const
    {
        return blocks_for(side.count, fold_threads * each);
    }
};

/* Sorts the keys, which are places, and then computes their numbers. */
template <Direction direction, typename Form, typename Number>
cudaError_t sort_by_keys(const Form &f, const shuf_primefold_shape &shape, const Work<Number> &w)
{
    const Side &side = w.side;
    const Number *none = nullptr;
    constexpr Direction back =
        direction == Direction::forward ? Direction::inverse : Direction::forward;
    const Arrays<Number> &a = w.arrays;
    Buffers<Key> keys{a.keys[0], a.keys[1]};
    if (w.is_cancelled())
        return cudaSuccess;
    write_digits<<<w.blocks(group), fold_threads, 0, w.stream>>>(f, side, 0, none, keys.now);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess)
        e = sort_keys(&keys, static_cast<Number>(side.count), side.key_bits, a.temporary,
                      a.temporary_bytes, w.stream);
    if (e != cudaSuccess)
        return e;
    return with_form<back>(shape, [&](auto of) {
        write_numbers<<<w.blocks(group), fold_threads, 0, w.stream>>>(
            of.make(w.computation.request.plan.permutation, shape), side, keys.now, w.numbers);
        return cudaGetLastError();
    });
}

/* The passes alternate between two buffers. The numbers begin in the one from which the last pass
 * leaves them in the plan. With few numbers CUB may leave them in the other one. */
template <typename Number> Buffers<Number> buffers_of(const Work<Number> &w)
{
    const unsigned passes = (w.side.key_bits + pass_bits - 1) / pass_bits;
    return passes % 2 ? Buffers<Number>{w.arrays.list, w.numbers}
                      : Buffers<Number>{w.numbers, w.arrays.list};
}

template <typename Form, typename Number>
cudaError_t sort_by_digits(const Form &f, const Work<Number> &w)
{
    const Side &side = w.side;
    const Arrays<Number> &a = w.arrays;
    Buffers<Digit> digits{a.digits[0], a.digits[1]};
    Buffers<Number> list = buffers_of(w);
    number_all<<<w.blocks(1), fold_threads, 0, w.stream>>>(side.count, list.now);
    cudaError_t e = cudaGetLastError();
    for (unsigned shift = 0; e == cudaSuccess && shift < side.key_bits && !w.is_cancelled();
         shift += digit_bits) {
        write_digits<<<w.blocks(group), fold_threads, 0, w.stream>>>(
            f, side, shift, shift ? list.now : nullptr, digits.now);
        e = cudaGetLastError();
        if (e == cudaSuccess)
            e = sort_digits(&digits, &list, static_cast<Number>(side.count),
                            std::min(side.key_bits - shift, digit_bits), a.temporary,
                            a.temporary_bytes, w.stream);
    }
    if (e == cudaSuccess && list.now != w.numbers)
        e = cudaMemcpyAsync(w.numbers, list.now, side.count * sizeof(Number),
                            cudaMemcpyDeviceToDevice, w.stream);
    return e;
}

/* Makes a list by sorts. */
template <Direction direction, typename Form, typename Number>
cudaError_t sort_side(const Form &f, const shuf_primefold_shape &shape, const Work<Number> &w)
{
    const bool by_keys = !w.side.by_rank && w.side.key_bits <= key_bits;
    return by_keys ? sort_by_keys<direction>(f, shape, w) : sort_by_digits(f, w);
}

/* Makes a list without sorts. */
template <typename Number> cudaError_t walk_side(const Work<Number> &w)
{
    if (w.side.by_rank && w.side.ranks.world == 1) {
        number_all<<<w.blocks(1), fold_threads, 0, w.stream>>>(w.side.count, w.numbers);
        return cudaGetLastError();
    }
    return (w.side.by_rank ? split_places<Number>
                           : select_order<Number>)(w.computation, w.arrays.temporary, w.numbers,
                                                   w.stream, w.cancelled);
}

template <Direction direction, typename Number> cudaError_t make_side(const Work<Number> &w)
{
    const shuf__plan &plan = w.computation.request.plan;
    const shuf__permutation &p = plan.permutation;
    const bool walks = w.side.by_rank ? w.methods.splits_places : w.methods.selects_order;
    const shuf_primefold_shape shape = shuf__primefold_shape(p.n);
    const uint64_t world = w.side.ranks.world;
    if (w.side.count == 0)
        return cudaMemsetAsync(w.counts, 0, world * sizeof(Number), w.stream);
    return with_form<direction>(shape, [&](auto of) {
        const auto f = of.make(p, shape);
        const cudaError_t e = walks ? walk_side(w) : sort_side<direction>(f, shape, w);
        if (e != cudaSuccess || *w.cancelled)
            return e;
        count_ranks<<<blocks_for(count_threads * world, fold_threads), fold_threads, 0, w.stream>>>(
            f, w.side, w.numbers, w.counts);
        return cudaGetLastError();
    });
}

/* ---- The plan ---- */

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

template <typename Number>
cudaError_t make_plan(const shuf__computation &computation, const Methods &methods, void *out,
                      cudaStream_t stream, bool *cancelled)
{
    const shuf__plan &plan = computation.request.plan;
    const auto a = lay_out<Number>(plan, methods, computation.workspace->memory);
    const Lists<Number> lists(plan, out);
    if (computation.workspace->bytes < a.bytes)
        return cudaErrorInvalidValue;
    cudaError_t e = cudaSuccess;
    for (int output = 0; output < 2 && e == cudaSuccess && !*cancelled; output++) {
        const shuf__range part = shuf__plan_part(&plan, plan.rank, output);
        Side side{part.first,
                  part.count,
                  {},
                  output != 0,
                  shuf__bits(output ? plan.world - 1 : plan.permutation.n - 1)};
        const Work<Number> w{computation,          methods, side,     a, lists.numbers[output],
                             lists.counts[output], stream,  cancelled};
        e = find_ranks(plan, !output, a.bounds[output], &side.ranks, stream);
        if (e == cudaSuccess)
            e = (output != 0) != plan.inverse ? make_side<Direction::forward>(w)
                                              : make_side<Direction::inverse>(w);
    }
    return e;
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

bool is_narrow(const shuf__request &request)
{
    return shuf__dtype_bytes(request.dtype) == sizeof(uint32_t);
}

} // namespace

Methods exchange_methods(const shuf__plan &plan)
{
    return {selects_order(plan), splits_places(plan)};
}

uint64_t exchange_bytes(const shuf__request &request, const Methods &methods)
{
    if (request.plan.part)
        return one_sided_bytes(request.plan);
    return is_narrow(request) ? lay_out<uint32_t>(request.plan, methods, nullptr).bytes
                              : lay_out<uint64_t>(request.plan, methods, nullptr).bytes;
}

cudaError_t exchange_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                           const Methods &methods, void *out, cudaStream_t stream, bool *cancelled)
{
    if (computation.request.plan.permutation.n <= SHUF_PRIMEFOLD_EXACT)
        return make_here(simd, computation, out, stream, cancelled);
    if (computation.request.plan.part)
        return one_sided_async(computation, out, stream, cancelled);
    return is_narrow(computation.request)
               ? make_plan<uint32_t>(computation, methods, out, stream, cancelled)
               : make_plan<uint64_t>(computation, methods, out, stream, cancelled);
}

} // namespace shuf
