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

/* Which values of some groups are not below n: a bit each, the first one's lowest. Differences are
 * small enough to have a sign where words have 32 bits. */
template <typename Form, int Groups>
__device__ __forceinline__ uint32_t not_below(const Form &f,
                                              const typename Form::Word (&x)[Groups][group])
{
    uint32_t which = 0;
#pragma unroll
    for (int g = Groups - 1; g >= 0; g--)
#pragma unroll
        for (int c = group - 1; c >= 0; c--)
            if constexpr (sizeof(x[g][c]) == sizeof(uint32_t))
                which = __funnelshift_l(f.n - 1 - x[g][c], which, 1);
            else
                which = which << 1 | (x[g][c] >= f.n ? 1 : 0);
    return which;
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

/* Which values of the group at i do not exist, as the row has only `count`: a bit each. */
__device__ __forceinline__ uint32_t beyond(uint64_t count, uint64_t i)
{
    constexpr uint32_t all = (1u << group) - 1;
    return i + group <= count ? 0 : i >= count ? all : all << (count - i) & all;
}

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

/* By a whole warp. `again`: which of a thread's values of the tile, a bit each, have to be walked
 * on or, where `anew` says so, made anew. There may be one in every second thread, or 32 in a
 * single one: the threads share them evenly, in a list. */
template <typename Form, int Groups, typename Out>
__device__ __forceinline__ void make_all_again(const Form &f, const typename Form::Row &keys,
                                               const Rows &rows, uint64_t first, uint32_t again,
                                               uint32_t anew, Out *out)
{
    constexpr uint32_t turn = fold_threads * group, warps = fold_threads / 32;
    static_assert(Groups * group <= 32 && Groups * turn <= 1 << 15, "bits of a word, of the list");
    __shared__ uint16_t list[warps][32 * group * Groups];
    uint16_t *const mine = list[threadIdx.x / 32];
    const uint32_t lane = threadIdx.x % 32;
    const WarpPart part(__popc(again));
    uint32_t end = part.begin;
#pragma unroll 1
    for (; again != 0; again &= again - 1) {
        const uint32_t bit = __ffs(static_cast<int>(again)) - 1;
        mine[end++] = static_cast<uint16_t>((anew >> bit & 1) << 15 |
                                            threadIdx.x * group + bit / group * turn + bit % group);
    }
    __syncwarp();
#pragma unroll 1
    for (uint32_t k = lane; k < part.all; k += 32) {
        const uint32_t at = mine[k] & 0x7fff;
        const uint64_t from = mine[k] >> 15 ? rows.position(first + at) : out[at];
        out[at] = static_cast<Out>(walked(f, keys, from));
    }
    __syncwarp();
}

/* Threads take groups in turns from value number `first` on, which goes to *out: Groups each, by
 * default as many as a tile has. */
template <typename Form, int Groups = Form::groups, typename Out>
__device__ __forceinline__ void tile_of_row(const Form &f, const typename Form::Row &keys,
                                            const Steps<typename Form::Word> &steps,
                                            const Rows &rows, uint64_t first, Out *out)
{
    constexpr uint64_t turn = fold_threads * group;
    const uint64_t mine = threadIdx.x * group, i = first + mine;
    typename Form::Word x[Groups][group];
    typename Form::Word start = f.start(keys, rows.offset + i * rows.stride);
#pragma unroll
    for (int g = 0; g < Groups; g++) {
        spread(f, start, steps.one, x[g]);
        start = f.add(start, steps.leap);
    }
    Watch watch{};
#pragma unroll
    for (int g = 0; g < Groups; g++)
        f.quick_rest(keys, x[g], watch);
    const bool whole = first + Groups * turn <= rows.whole;
    uint32_t again = 0; /* a bit a value */
    uint32_t anew = f.right(watch) && Form::is_right_past_n && sizeof(Out) >= sizeof(x[0][0])
                        ? 0
                        : ~0u; /* which of them from their positions on */
    if (!f.finished(watch) || !whole)
        again = f.right(watch) ? not_below(f, x) : ~0u >> (32 - Groups * group);
    if (whole) {
#pragma unroll
        for (int g = 0; g < Groups; g++)
            put_group(out + mine + g * turn, x[g]);
    } else {
#pragma unroll
        for (int g = 0; g < Groups; g++) {
            const uint64_t here = i + g * turn;
            if (here < rows.count)
                put_some(out + mine + g * turn, x[g], rows.count - here);
            const uint32_t last = 1u << (g * group + (rows.count - 1 - here) % group);
            if (rows.wraps && here < rows.count && here + group >= rows.count)
                again |= last, anew |= last;
        }
    }
    if (rows.count - first < Groups * turn)
#pragma unroll
        for (int g = 0; g < Groups; g++)
            again &= ~(beyond(rows.count, i + g * turn) << g * group);
    if (__any_sync(0xffffffff, again != 0))
        make_all_again<Form, Groups>(f, keys, rows, first, again, anew, out);
}

} // namespace shuf

#endif
