/* SPDX-License-Identifier: MIT
 *
 * Rows of `primefold` in the hands of threads. Nothing is compacted, so nothing is
 * scanned: a thread knows where its values stand, four neighbours for each store.
 *
 * Along the positions of a row the first map is a sum. Values that are unfinished
 * are stored as the others and made again in their place, which is rare but for
 * the smallest n: so what nearly all values go through stays short.
 */
#ifndef SHUF__CUDA_FOLD_ROWS_CUH
#define SHUF__CUDA_FOLD_ROWS_CUH

#include "backend.h"
#include "fold.cuh"
#include "tuning.cuh"

#include <cuda_runtime.h>

namespace shuf
{

using tuning::fold_threads;
constexpr int group = 4; /* neighbours that a thread stores at once */
template <typename Form>
constexpr uint64_t fold_tile = uint64_t{fold_threads} * group *Form::groups;

/* Bounds the registers of a thread; 64-bit values of 32-bit words take more, and wait for memory.
 */
template <typename Form, typename Out>
constexpr int fold_blocks_per_sm = sizeof(Out) > sizeof(typename Form::Word)
                                       ? Form::blocks_per_sm * 2 / 3
                                       : Form::blocks_per_sm;

/* What is the same for every row of a job. */
struct Rows {
    uint64_t count, offset, stride;
    uint64_t one, leap; /* the distance over a stride, and over those of a block's groups */
    uint64_t whole;     /* from the front: stored in groups, nothing special about them */
    uint64_t wrapped;   /* where a row's last value stands, if that is at the front */
    bool wraps;

    __device__ __forceinline__ uint64_t position(uint64_t i) const
    {
        return wraps && i == count - 1 ? wrapped : offset + i * stride;
    }
};

inline Rows make_rows(const shuf__job &job)
{
    Rows rows{};
    rows.count = job.count;
    rows.offset = job.offset;
    rows.stride = job.stride;
    const uint64_t last = job.offset + (job.count - 1) * job.stride;
    rows.wraps = last >= job.n;
    rows.wrapped = rows.wraps ? last - job.n : 0;
    const bool aligned = job.rows == 1 || job.count % group == 0; /* each row, to 16 bytes */
    rows.whole = aligned ? job.count - (rows.wraps ? 1 : 0) : 0;
    return rows;
}

template <typename Form> Rows make_rows_for(const shuf__job &job, uint64_t p)
{
    Rows rows = make_rows(job);
    rows.one = Form::distance(job.stride, 1, p);
    rows.leap = Form::distance(job.stride, fold_threads * group, p);
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

/* The value at a position, or what comes after a value that is not below n. */
template <typename Form>
__device__ __forceinline__ typename Form::Word walked(const Form &f, const typename Form::Row &keys,
                                                      uint64_t position)
{
    typename Form::Word x[1] = {static_cast<typename Form::Word>(position)};
    do {
        x[0] = f.first(f.start(keys, x[0]));
        f.rest(keys, x);
    } while (x[0] >= f.n);
    return x[0];
}

template <typename Form, typename Out>
__device__ __forceinline__ void make_again(const Form &f, const typename Form::Row &keys,
                                           const Rows &rows, uint64_t i, Out *to)
{
    *to = static_cast<Out>(walked(f, keys, rows.position(i)));
}

/* Which values of a group have to be made again: a bit each. */
template <typename Form>
__device__ __forceinline__ uint32_t unfinished(const Form &f, const Watch &watch,
                                               const typename Form::Word (&x)[group])
{
    uint32_t which = f.right(watch) ? 0 : (1u << group) - 1;
#pragma unroll
    for (int c = 0; c < group; c++)
        which |= x[c] >= f.n ? 1u << c : 0;
    return which;
}

/* The values of a group after the first map, from the start of the first of them. */
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

/* Near a row's end, or where rows do not begin at multiples of 16 bytes. */
template <typename Word, typename Out>
__device__ __forceinline__ void put_some(Out *out, const Word (&x)[group], uint64_t left)
{
#pragma unroll
    for (int c = 0; c < group; c++)
        if (c < left)
            out[c] = static_cast<Out>(x[c]);
}

template <typename Word> struct Steps {
    Word one, leap; /* over a stride, and over those of a block's groups */
};

/* A thread's part of what the threads of a warp have of something, one behind the other. */
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

/* Unfinished values, by the groups that they are in: a warp collects groups, and finishes them when
 * there is one for each of its threads. A single value would take it as long. */
template <typename Form, typename Out> struct Unfinished {
    static constexpr uint32_t lanes = 32;
    static constexpr uint32_t anew = uint32_t{1} << 31; /* all of the group, from positions on */

    const Form &f;
    const typename Form::Row &keys;
    const Rows &rows;
    uint32_t *list; /* of lanes + lanes * Groups */
    uint32_t count;
    uint64_t first; /* value of the row, which *out is; */
    Out *out;       /* entries of the list are relative to it */

    /* The last groups, at most as many as there are lanes. */
    __device__ __forceinline__ void finish()
    {
        const uint32_t lane = threadIdx.x % lanes, from = count > lanes ? count - lanes : 0;
        __syncwarp();
        if (from + lane < count) {
            const uint32_t entry = list[from + lane], at = entry & ~anew;
            Out value[group];
#pragma unroll
            for (uint32_t c = 0; c < group; c++)
                value[c] = first + at + c < rows.count ? out[at + c] : 0;
            uint32_t which = 0;
#pragma unroll
            for (uint32_t c = 0; c < group; c++)
                which |=
                    (entry & anew || value[c] >= f.n) && first + at + c < rows.count ? 1u << c : 0;
#pragma unroll 1
            for (; which != 0; which &= which - 1) {
                const uint32_t c = __ffs(static_cast<int>(which)) - 1;
                uint64_t x = 0;
#pragma unroll
                for (uint32_t k = 0; k < group; k++)
                    x = k == c ? value[k] : x;
                if (entry & anew)
                    x = rows.position(first + at + c);
                out[at + c] = static_cast<Out>(walked(f, keys, x));
            }
        }
        count = from;
        __syncwarp();
    }

    /* Of a thread's groups, a turn apart from `at` on, those whose bit is set. */
    __device__ __forceinline__ void take(uint32_t at, uint32_t again, uint32_t all)
    {
        constexpr uint32_t turn = fold_threads * group;
        const WarpPart part(__popc(again));
        uint32_t end = count + part.begin;
#pragma unroll 1
        for (; again != 0; again &= again - 1) {
            const uint32_t g = __ffs(static_cast<int>(again)) - 1;
            list[end++] = (all >> g & 1 ? anew : 0) | (at + g * turn);
        }
        count += part.all;
        while (count >= lanes)
            finish();
    }
};

/* Threads take groups in turns from value number `rest.first + at` on: Groups each. */
template <int Groups, typename Form, typename Out>
__device__ __forceinline__ void tile_of_row(const Steps<typename Form::Word> &steps, uint32_t at,
                                            Unfinished<Form, Out> &rest)
{
    constexpr uint64_t turn = fold_threads * group;
    const Form &f = rest.f;
    const Rows &rows = rest.rows;
    const uint32_t mine = at + threadIdx.x * group;
    const uint64_t first = rest.first + at, i = rest.first + mine;
    Out *const out = rest.out + mine;
    typename Form::Word x[Groups][group];
    typename Form::Word start = f.start(rest.keys, rows.offset + i * rows.stride);
#pragma unroll
    for (int g = 0; g < Groups; g++) {
        spread(f, start, steps.one, x[g]);
        start = f.add(start, steps.leap);
    }
    constexpr uint32_t every = (1u << Groups) - 1;
    Watch watch{};
    uint32_t most[Groups];
#pragma unroll
    for (int g = 0; g < Groups; g++) {
        watch.most = 0;
        f.quick_rest(rest.keys, x[g], watch);
        most[g] = watch.most;
    }
    const bool right = f.right(watch);           /* of all groups */
    uint32_t again = right ? 0 : every, all = 0; /* a bit a group */
#pragma unroll
    for (int g = 0; g < Groups; g++)
        again |= f.is_below(most[g]) ? 0 : 1u << g;
    if (first + Groups * turn <= rows.whole) {
#pragma unroll
        for (int g = 0; g < Groups; g++)
            put_group(out + g * turn, x[g]);
    } else {
#pragma unroll
        for (int g = 0; g < Groups; g++) {
            const uint64_t here = i + g * turn;
            if (here < rows.count)
                put_some(out + g * turn, x[g], rows.count - here);
            else
                again &= ~(1u << g);
            if (rows.wraps && here < rows.count && here + group >= rows.count)
                again |= 1u << g, all |= 1u << g;
        }
    }
    if (__any_sync(0xffffffff, again != 0)) {
        if (!right || !Form::is_right_past_n || sizeof(Out) < sizeof(x[0][0]))
            all = every;
        rest.take(mine, again, all);
    }
}

} // namespace shuf

#endif
