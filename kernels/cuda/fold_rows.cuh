/* SPDX-License-Identifier: MIT
 *
 * Computes rows of `primefold` by a form (fold.cuh). No value is left out, so no scan is needed. A
 * thread knows the places of its values, and stores four neighbours together.
 *
 * The first map is linear. So a thread gets the start of its next value by an addition. Values that
 * fail the range check are stored like the others, and later replaced in memory. Such values are
 * rare except for the smallest n, so nearly all values take a short path.
 */
#ifndef SHUF__CUDA_FOLD_ROWS_CUH
#define SHUF__CUDA_FOLD_ROWS_CUH

#include "backend.h"
#include "fold.cuh"
#include "slice.h"
#include "tuning.cuh"

#include <cuda_runtime.h>

namespace shuf
{

using tuning::fold_threads;
template <typename Form> constexpr uint32_t fold_tile = fold_threads *group *Form::groups;

/* The number of blocks on a multiprocessor. It limits the registers of a thread. 64-bit values from
 * 32-bit words need more registers. They wait for memory anyway, so fewer blocks are enough. */
template <typename Form, typename Out>
constexpr int fold_blocks_per_sm = sizeof(Out) > sizeof(typename Form::Word)
                                       ? Form::blocks_per_sm * 2 / 3
                                       : Form::blocks_per_sm;

/* The parameters that all rows of a computation share. */
struct Rows {
    uint64_t count, offset, stride;
    uint64_t one, leap; /* distances: from a value to the next; over all groups of a block */
    uint64_t whole;     /* so many values from the front are stored in whole groups */
    uint64_t wrapped;   /* the position of the last value, if it wraps */
    bool wraps;

    /* Does the same as shuf__slice_position(), with a precomputed `wrapped`. */
    __device__ __forceinline__ uint64_t position(uint64_t i) const
    {
        return wraps && i == count - 1 ? wrapped : offset + i * stride;
    }
};

inline Rows make_rows(const shuf__permutation &p)
{
    const shuf__slice slice = shuf__slice_make(&p);
    Rows rows{};
    rows.count = slice.count;
    rows.offset = slice.offset;
    rows.stride = slice.stride;
    rows.wraps = shuf__slice_wraps(&slice);
    rows.wrapped = rows.wraps ? shuf__slice_position(&slice, slice.count - 1) : 0;
    const bool aligned = p.rows == 1 || p.count % group == 0; /* rows begin at 16-byte multiples */
    rows.whole = aligned ? p.count - (rows.wraps ? 1 : 0) : 0;
    return rows;
}

template <typename Form> Rows make_rows_for(const shuf__permutation &p, uint64_t prime)
{
    Rows rows = make_rows(p);
    rows.one = Form::distance(p.stride, 1, prime);
    rows.leap = Form::distance(p.stride, fold_threads * group, prime);
    return rows;
}

inline unsigned blocks_for(uint64_t work, uint64_t each)
{
    return static_cast<unsigned>((work + each - 1) / each);
}

__device__ __forceinline__ void store_group(uint32_t *out, const uint32_t (&x)[group])
{
    *reinterpret_cast<uint4 *>(out) = make_uint4(x[0], x[1], x[2], x[3]);
}

__device__ __forceinline__ void store_group(uint64_t *out, const uint64_t (&x)[group])
{
    reinterpret_cast<ulonglong2 *>(out)[0] = make_ulonglong2(x[0], x[1]);
    reinterpret_cast<ulonglong2 *>(out)[1] = make_ulonglong2(x[2], x[3]);
}

__device__ __forceinline__ void load_group(const uint32_t *at, uint32_t (&x)[group])
{
    const uint4 four = *reinterpret_cast<const uint4 *>(at);
    x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
}

__device__ __forceinline__ void load_group(const uint64_t *at, uint64_t (&x)[group])
{
    const ulonglong2 *pairs = reinterpret_cast<const ulonglong2 *>(at);
    const ulonglong2 low = pairs[0], high = pairs[1];
    x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
}

/* Applies the permutation of [0, p) to `position` until the result is below n. `position` is below
 * n, or a number that such a walk from a position below n reaches. From any other number the walk
 * might never end. */
template <typename Form>
__device__ __forceinline__ typename Form::Word
cycle_walk(const Form &f, const typename Form::Row &keys, uint64_t position)
{
    auto x = static_cast<typename Form::Word>(position);
    do
        x = f.rest(keys, f.first(f.start(keys, x)));
    while (x >= f.n);
    return x;
}

template <typename Form, typename Out>
__device__ __forceinline__ void repair(const Form &f, const typename Form::Row &keys,
                                       const Rows &rows, uint64_t i, Out *to)
{
    *to = static_cast<Out>(cycle_walk(f, keys, rows.position(i)));
}

template <typename Form>
__device__ __forceinline__ bool finished(const Form &f, uint32_t met,
                                         const typename Form::Word (&x)[group])
{
    return f.in_range(met) && f.is_below(f.most(x));
}

/* A bit for each value of a group that must be computed again. */
template <typename Form>
__device__ __forceinline__ uint32_t unfinished(const Form &f, uint32_t met,
                                               const typename Form::Word (&x)[group])
{
    uint32_t which = f.in_range(met) ? 0 : (1u << group) - 1;
#pragma unroll
    for (int c = 0; c < group; c++)
        which |= x[c] >= f.n ? 1u << c : 0;
    return which;
}

/* Computes the values of a group after the first map. `start` is the start of the first value. */
template <typename Form>
__device__ __forceinline__ void spread(const Form &f, typename Form::Word start,
                                       typename Form::Word step, typename Form::Word (&x)[group])
{
#pragma unroll
    for (int c = 0; c < group; c++) {
        x[c] = f.first(start);
        start = f.add(start, step);
    }
}

template <typename Word, typename Out>
__device__ __forceinline__ void put_group(Out *out, const Word (&x)[group])
{
    Out value[group];
#pragma unroll
    for (int c = 0; c < group; c++)
        value[c] = static_cast<Out>(x[c]);
    store_group(out, value);
}

/* The same, called by all threads of a warp for neighbouring groups. Two threads exchange half of
 * their 64-bit values, so that together they write whole sectors of 32 bytes in each store. */
template <typename Word, typename Out>
__device__ __forceinline__ void put_groups(Out *out, const Word (&x)[group])
{
    if constexpr (sizeof(Out) == sizeof(uint64_t)) {
        const bool odd = threadIdx.x & 1;
        const Word from_0 = __shfl_xor_sync(0xffffffff, odd ? x[0] : x[2], 1);
        const Word from_1 = __shfl_xor_sync(0xffffffff, odd ? x[1] : x[3], 1);
        auto *const first = reinterpret_cast<ulonglong2 *>(odd ? out - 2 : out);
        first[0] = make_ulonglong2(odd ? from_0 : x[0], odd ? from_1 : x[1]);
        first[2] = make_ulonglong2(odd ? x[2] : from_0, odd ? x[3] : from_1);
    } else {
        put_group(out, x);
    }
}

/* Stores single values: near a row's end, or if rows do not begin at multiples of 16 bytes. */
template <typename Word, typename Out>
__device__ __forceinline__ void put_some(Out *out, const Word (&x)[group], uint64_t left)
{
#pragma unroll
    for (int c = 0; c < group; c++)
        if (c < left)
            out[c] = static_cast<Out>(x[c]);
}

template <typename Word> struct Steps {
    Word one, leap; /* from a start to the next; over all groups of a block */
};

/* Increments a count in shared memory. Usually few threads of a warp call this at the same time.
 * atomicAdd() would first combine their additions, which takes longer. */
__device__ __forceinline__ uint32_t shared_count(uint32_t &count)
{
    uint32_t before;
    asm volatile("atom.shared.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(&count)))
                 : "memory");
    return before;
}

/* Numbers the items of a warp, thread by thread. This thread has `count` items, from number `begin`
 * on. The warp has `all` items. */
struct WarpPart {
    uint32_t begin, all;

    __device__ __forceinline__ explicit WarpPart(uint32_t count)
    {
        const uint32_t lane = threadIdx.x % 32;
        uint32_t end = count;
#pragma unroll
        for (uint32_t far = 1; far < 32; far *= 2) {
            const uint32_t before = __shfl_up_sync(0xffffffff, end, far);
            end += lane >= far ? before : 0;
        }
        begin = end - count;
        all = __shfl_sync(0xffffffff, end, 31);
    }
};

/* Two masks, with a bit for each group of a thread's tile. `groups`: the group has unfinished
 * values. `anew`: these values are computed again from their positions. For the other groups, cycle
 * walking goes on from the stored values. */
struct Again {
    uint32_t groups, anew;
};

/* A warp's list of work for later, in shared memory. It finishes 32 entries at a time, one in each
 * thread, because one alone would take as long. A thread adds at most `Each` entries before a
 * finish_whole(). */
template <typename Entry, int Each> struct Deferred {
    static constexpr uint32_t lanes = 32;

    uint32_t count;
    Entry entry[lanes * (1 + Each)];

    __device__ __forceinline__ void start()
    {
        if (threadIdx.x % lanes == 0)
            count = 0;
        __syncwarp();
    }

    __device__ __forceinline__ void add(const Entry &more)
    {
        entry[shared_count(count)] = more;
    }

    /* Finishes the last entries, at most one for each lane. */
    template <typename Finish> __device__ __forceinline__ void finish(Finish &&finish_entry)
    {
        const uint32_t lane = threadIdx.x % lanes, all = count;
        const uint32_t from = all > lanes ? all - lanes : 0;
        __syncwarp();
        if (lane == 0)
            count = from;
        if (from + lane < all)
            finish_entry(entry[from + lane]);
        __syncwarp();
    }

    template <typename Finish> __device__ __forceinline__ void finish_whole(Finish &&finish_entry)
    {
        __syncwarp();
        while (count >= lanes)
            finish(finish_entry);
    }
};

/* Replaces the unfinished values of a group in memory. */
template <typename Form, typename Out, int Groups = Form::groups> struct Unfinished {
    /* An entry is the number of a group's first value, and perhaps the bit `anew`. */
    using List = Deferred<uint32_t, Groups>;
    static constexpr uint32_t anew = uint32_t{1} << 31;

    const Form &f;
    const typename Form::Row &keys;
    const Rows &rows;
    List &list;     /* of the warp, in shared memory */
    uint64_t first; /* number of the value at *out; the list has numbers relative to it */
    Out *out;

    __device__ __forceinline__ void start()
    {
        list.start();
    }

    __device__ __forceinline__ void finish()
    {
        list.finish(*this);
    }

    /* Adds the groups of a thread. They begin at `at` and are group_stride apart. */
    __device__ __forceinline__ void take(uint32_t at, Again again)
    {
        constexpr uint32_t group_stride = fold_threads * group;
        if (!__any_sync(0xffffffff, again.groups != 0))
            return;
#pragma unroll 1
        for (; again.groups != 0; again.groups &= again.groups - 1) {
            const uint32_t g = __ffs(static_cast<int>(again.groups)) - 1;
            list.add((again.anew >> g & 1 ? anew : 0) | (at + g * group_stride));
        }
        list.finish_whole(*this);
    }

    __device__ __forceinline__ void operator()(uint32_t entry) const
    {
        const uint32_t at = entry & ~anew;
        Out value[group];
#pragma unroll
        for (uint32_t c = 0; c < group; c++)
            value[c] = first + at + c < rows.count ? out[at + c] : 0;
        uint32_t which = 0;
#pragma unroll
        for (uint32_t c = 0; c < group; c++)
            which |= (entry & anew || value[c] >= f.n) && first + at + c < rows.count ? 1u << c : 0;
#pragma unroll 1
        for (; which != 0; which &= which - 1) {
            const uint32_t c = __ffs(static_cast<int>(which)) - 1;
            typename Form::Word x = 0;
#pragma unroll
            for (uint32_t k = 0; k < group; k++)
                x = k == c ? static_cast<typename Form::Word>(value[k]) : x;
            if (entry & anew || !Form::is_right_past_n)
                x = cycle_walk(f, keys, rows.position(first + at + c));
            else if ((x = f.settled(x)) >= f.n)
                x = cycle_walk(f, keys, x);
            out[at + c] = static_cast<Out>(x);
        }
    }
};

/* The part of a row that a block computes. */
struct Part {
    uint32_t count, whole; /* all values, and the values in whole groups */
    bool wraps;            /* the position of the last value is past n and wraps around */

    __device__ __forceinline__ Part(const Rows &rows, uint64_t first, uint32_t most)
    {
        const uint64_t left = rows.count - first, whole_left = rows.whole - first;
        count = first > rows.count ? 0 : left < most ? static_cast<uint32_t>(left) : most;
        whole = first > rows.whole  ? 0
                : whole_left < most ? static_cast<uint32_t>(whole_left)
                                    : most;
        wraps = rows.wraps && first < rows.count && left <= most;
    }
};

/* Computes the groups of a thread, which are group_stride apart. The first group begins at value
 * number `at` of the part, and goes to *out. On entry `start` is the start of this value. On return
 * it is the start of the thread's next tile. */
template <int Groups, typename Form, typename Out>
__device__ __forceinline__ Again tile_of_row(const Form &f, const typename Form::Row &keys,
                                             const Steps<typename Form::Word> &steps,
                                             const Part &part, uint32_t at,
                                             typename Form::Word &start, Out *out)
{
    constexpr uint32_t group_stride = fold_threads * group, every = (1u << Groups) - 1;
    typename Form::Word x[Groups][group];
#pragma unroll
    for (int g = 0; g < Groups; g++) {
        spread(f, start, steps.one, x[g]);
        start = f.add(start, steps.leap);
    }
    uint32_t met = 0;
    f.evaluate_unchecked(keys, x, met);
    const bool right = f.in_range(met); /* holds for all groups */
    Again again = {right ? 0 : every, 0};
#pragma unroll
    for (int g = 0; g < Groups; g++)
        again.groups |= f.is_below(f.most(x[g])) ? 0 : 1u << g;
    if (at - threadIdx.x * group + Groups * group_stride <= part.whole) {
#pragma unroll
        for (int g = 0; g < Groups; g++)
            put_groups(out + g * group_stride, x[g]);
    } else {
#pragma unroll
        for (int g = 0; g < Groups; g++) {
            const uint32_t here = at + g * group_stride;
            if (here < part.count)
                put_some(out + g * group_stride, x[g], part.count - here);
            else
                again.groups &= ~(1u << g);
            if (part.wraps && here < part.count && here + group >= part.count)
                again.groups |= 1u << g, again.anew |= 1u << g;
        }
    }
    if (!right || sizeof(Out) < sizeof(x[0][0])) /* a truncated value may be below n by chance */
        again.anew = every;
    return again;
}

/* Computes at most `most` values of a row, from value number `first` on. This value goes to *out.
 * Without a range check, wrong values stay wrong. */
template <typename Form, typename Out>
__device__ __forceinline__ void
tiles_of_row(const Form &f, const typename Form::Row &keys, const Rows &rows,
             const Steps<typename Form::Word> &steps, uint64_t first, uint32_t most, Out *out)
{
    using Rest = Unfinished<Form, Out>;
    __shared__ typename Rest::List list[fold_threads / 32];
    Rest rest{f, keys, rows, list[threadIdx.x / 32], first, out};
    if constexpr (Form::checks_range)
        rest.start();
    const Part part(rows, first, most);
    const uint32_t mine = threadIdx.x * group;
    typename Form::Word start = f.start(keys, rows.offset + (first + mine) * rows.stride);
    Out *here = out + mine;
#pragma unroll 1
    for (uint32_t at = mine; at - mine < part.count; at += fold_tile<Form>) {
        const Again again = tile_of_row<Form::groups>(f, keys, steps, part, at, start, here);
        if constexpr (Form::checks_range)
            rest.take(at, again);
        here += fold_tile<Form>;
    }
    if constexpr (Form::checks_range)
        rest.finish();
}

/* ---- Values at positions that are not neighbours: a thread looks up a group of them ---- */

/* Sets x[c] to the value at position[c] < n. */
template <typename Form, typename Position>
__device__ __forceinline__ void look_up_group(const Form &f, const Position (&position)[group],
                                              typename Form::Word (&x)[group])
{
    typename Form::Word y[1][group];
#pragma unroll
    for (int c = 0; c < group; c++)
        y[0][c] = f.first(f.start(f.row, position[c]));
    uint32_t met = 0;
    f.evaluate_unchecked(f.row, y, met);
    const uint32_t again = finished(f, met, y[0]) ? 0 : unfinished(f, met, y[0]);
#pragma unroll
    for (int c = 0; c < group; c++)
        x[c] = again >> c & 1 ? cycle_walk(f, f.row, position[c]) : y[0][c];
}

} // namespace shuf

#endif
