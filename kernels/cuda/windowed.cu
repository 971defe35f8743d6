/* SPDX-License-Identifier: MIT
 *
 * Windowed orders: see orders.cuh. The orders within windows are rows of `primefold`, and a block
 * computes a part of a window. A first kernel makes a list, in scratch memory: how far the order of
 * the chunks moves each chunk of a window. From it a thread gets the record of a number of its
 * window.
 *
 * All windows have the same size, except the last one and that of the last chunk. These two have
 * launches of their own.
 */
#include "orders.cuh"

#include "fold_keys.cuh"
#include "host/permute.h"
#include "permute.cuh"
#include "shuf/windowed.h"
#include "simd/primefold.h"
#include "slice.h"

#include <algorithm>
#include <memory>
#include <new>

namespace shuf
{

namespace
{

/* The groups of a thread. A block makes the keys of its window itself, which takes as long as one
 * turn, so with many values a block has more of them. */
constexpr uint32_t few_turns = 8, many_turns = 32;
constexpr uint64_t many_values = uint64_t{1} << 26;

/* The windows of a launch. */
struct Windows {
    uint64_t first, records; /* the position of the first window's first record; of each window */
    uint64_t offset, stride, count; /* the requested values of the row */
    uint64_t chunk, chunks;         /* records of a chunk; chunks of a window in the list */
    uint64_t gap_at, gap;           /* as in shuf_window */
    uint64_t one, leap;             /* distances, as in Rows */
    uint32_t multiplier, shift;     /* x / chunk = (x multiplier >> 32) >> shift for narrow x */
    uint32_t parts, turns;          /* blocks of a window; groups of a thread */
    uint64_t base;                  /* values of the rows before */

    /* The number of the first requested value at `position` or later. */
    __device__ __forceinline__ uint64_t value_at(uint64_t position) const
    {
        const uint64_t past = position <= offset ? 0 : position - offset;
        const uint64_t i = stride == 1 ? past : (past + stride - 1) / stride;
        return i < count ? i : count;
    }
};

/* The destination of values. With Narrow, all numbers of records and gaps are below 2^31, and a
 * chunk has at least 2 records. */
template <typename Out, bool Narrow> struct Target {
    const Windows &w;
    const Out *moves; /* of the window */
    Out *out;         /* of the row */

    /* A number of 32 bits stays one: only a window with a later chunk has a gap. */
    template <typename Word> __device__ __forceinline__ Out record(Word number) const
    {
        if constexpr (Narrow) {
            const auto n = static_cast<uint32_t>(number);
            const uint32_t x =
                n >= static_cast<uint32_t>(w.gap_at) ? n + static_cast<uint32_t>(w.gap) : n;
            return x + __ldg(moves + (__umulhi(x, w.multiplier) >> w.shift));
        } else {
            const Word x = number + (number >= w.gap_at ? static_cast<Word>(w.gap) : 0);
            return static_cast<Out>(x) + __ldg(moves + x / w.chunk);
        }
    }
};

/* Turns the order of the chunks into the list. Each window has `chunks` of them. */
template <typename Out>
__global__ void make_moves(Out *moves, uint64_t all, uint64_t chunks, uint64_t chunk)
{
    const uint64_t i = uint64_t{blockIdx.x} * fold_threads + threadIdx.x;
    if (i < all)
        moves[i] = static_cast<Out>((moves[i] - i % chunks) * chunk);
}

template <typename Form, typename To>
__device__ __forceinline__ void put_one(const Form &f, const typename Form::Row &keys, const To &to,
                                        uint64_t first, uint64_t i)
{
    const uint64_t position = to.w.offset + i * to.w.stride - first;
    to.out[i] = to.record(cycle_walk(f, keys, position));
}

/* The values of a warp that must be computed again. The warp computes 32 at a time, one in each
 * lane, because one alone would take as long. */
template <typename Form, typename To> struct Again {
    static constexpr uint32_t lanes = 32;

    struct List {
        uint32_t count, value[lanes * (1 + group)]; /* relative to `from` */
    };

    const Form &f;
    const typename Form::Row &keys;
    const To &to;
    uint64_t first, from; /* the position of the window; a value of the row */
    List &list;

    __device__ __forceinline__ void start()
    {
        if (threadIdx.x % lanes == 0)
            list.count = 0;
        __syncwarp();
    }

    /* Computes the last values of the list, at most one for each lane. */
    __device__ __forceinline__ void finish()
    {
        const uint32_t lane = threadIdx.x % lanes, count = list.count;
        const uint32_t kept = count > lanes ? count - lanes : 0;
        __syncwarp();
        if (lane == 0)
            list.count = kept;
        if (kept + lane < count)
            put_one(f, keys, to, first, from + list.value[kept + lane]);
        __syncwarp();
    }

    /* All lanes call it. `which` has a bit for each value of this lane's group at `at`. */
    __device__ __forceinline__ void take(uint32_t at, uint32_t which)
    {
        if (!__any_sync(0xffffffff, which != 0))
            return;
#pragma unroll 1
        for (; which != 0; which &= which - 1)
            list.value[shared_count(list.count)] = at + __ffs(static_cast<int>(which)) - 1;
        __syncwarp();
    }
};

/* Stores the records of a group, and returns a bit for each value that failed a check. */
template <typename Form, typename Out, bool Narrow>
__device__ __forceinline__ uint32_t put_window_group(const Form &f, const Target<Out, Narrow> &to,
                                                     uint64_t i, uint64_t end, bool right,
                                                     typename Form::Word (&x)[group])
{
    uint32_t again = right ? 0 : (1u << group) - 1;
    if (!right || !f.is_below(f.most(x)))
#pragma unroll
        for (int c = 0; c < group; c++) {
            again |= x[c] >= f.n ? 1u << c : 0;
            x[c] = x[c] >= f.n ? 0 : x[c];
        }
    Out value[group];
#pragma unroll
    for (int c = 0; c < group; c++)
        value[c] = to.record(x[c]);
    if (i - threadIdx.x % 32 * group + 32 * group <= end) {
        put_groups(to.out + i, value);
        return again;
    }
    if (i >= end)
        return 0;
    put_some(to.out + i, value, end - i);
    return end - i < group ? again & ((1u << (end - i)) - 1) : again;
}

template <typename Form, int Maps, bool Narrow, typename Out>
__global__ void __launch_bounds__(fold_threads, Form::row_blocks_per_sm)
    fold_windows(__grid_constant__ const Form f, __grid_constant__ const RowKeys of,
                 __grid_constant__ const Windows w, const Out *moves, Out *out)
{
    using Word = typename Form::Word;
    __shared__ typename Form::Row keys;
    __shared__ uint32_t words[8 * key_blocks<Form, Maps>];
    const uint64_t window = blockIdx.x / w.parts, part = blockIdx.x % w.parts;
    const uint64_t first = w.first + window * w.records;
    const uint64_t begin = w.value_at(first), end = w.value_at(first + w.records);
    const uint64_t aligned = begin + (group - (w.base + begin) % group) % group;
    const uint64_t from = aligned + part * (fold_threads * group * uint64_t{w.turns});
    if (part > 0 && from >= end)
        return;
    make_rows_here<Form, Maps>(f, of, window, 1, words, &keys);
    moves += window * w.chunks;
    asm("" : "+l"(moves)); /* else the compiler would compute it again for every value */
    const Target<Out, Narrow> to = {w, moves, out};
    if (part == 0 && begin + threadIdx.x < aligned && begin + threadIdx.x < end)
        put_one(f, keys, to, first, begin + threadIdx.x);
    const Word one = f.step_there(keys, w.one), leap = f.step_there(keys, w.leap);
    constexpr uint32_t far = fold_threads * group;
    using Rest = Again<Form, Target<Out, Narrow>>;
    __shared__ typename Rest::List list[fold_threads / 32];
    Rest rest{f, keys, to, first, from, list[threadIdx.x / 32]};
    rest.start();
    const uint64_t values = end > from ? end - from : 0;
    uint32_t at = threadIdx.x * group; /* relative to `from` */
    Word start = f.start(keys, w.offset + (from + at) * w.stride - first);
#pragma unroll 1
    for (uint32_t turn = 0; turn < w.turns && turn * far < values; turn++, at += far) {
        Word x[1][group];
        uint32_t met = 0;
        spread(f, start, one, x[0]);
        start = f.add(start, leap);
        f.evaluate_unchecked(keys, x, met);
        rest.take(at, put_window_group(f, to, from + at, end, f.in_range(met), x[0]));
        while (rest.list.count >= rest.lanes)
            rest.finish();
    }
    rest.finish();
}

/* Windows of few records: a block computes one, by the exchanges of its row. */
template <typename Out>
__global__ void __launch_bounds__(32)
    exchange_windows(__grid_constant__ const RowKeys of, __grid_constant__ const Windows w,
                     const Out *moves, Out *out)
{
    __shared__ uint8_t with[SHUF_PRIMEFOLD_EXACT], value[SHUF_PRIMEFOLD_EXACT];
    const auto n = static_cast<uint32_t>(of.shape.n);
    const uint64_t window = blockIdx.x, first = w.first + window * w.records;
    const uint64_t begin = w.value_at(first), end = w.value_at(first + w.records);
    for (uint32_t block = threadIdx.x; 8 * block < n; block += 32) {
        uint32_t word[8];
        shuf_key_words_for(n, of.key, of.epoch + window, SHUF_PURPOSE_PRIMEFOLD, block, word);
#pragma unroll
        for (uint32_t i = 0; i < 8; i++)
            if (const uint32_t k = 8 * block + i; k < n) {
                with[k] = shuf_primefold_exchange(word[i], k);
                value[k] = static_cast<uint8_t>(k);
            }
    }
    __syncwarp();
    if (threadIdx.x == 0)
        for (uint32_t k = n; k-- > 1;) {
            const uint8_t kept = value[k];
            value[k] = value[with[k]];
            value[with[k]] = kept;
        }
    __syncwarp();
    const Target<Out, false> to = {w, moves + window * w.chunks, out};
    for (uint64_t i = begin + threadIdx.x; i < end; i += 32)
        out[i] = to.record(uint32_t{value[w.offset + i * w.stride - first]});
}

template <typename Out> __global__ void put_value(Out *at, Out value)
{
    *at = value;
}

/* ---- The host ---- */

/* One row of a computation. */
struct Row {
    shuf_windowed order;
    uint64_t offset, stride, count; /* without a value that wraps around */
    uint64_t from, to;              /* the windows with requested values */
    uint64_t base;                  /* values of the rows before */
};

/* The values that do not wrap: all, or all but the last. */
uint64_t straight(const shuf__permutation &p)
{
    const shuf__slice slice = shuf__slice_make(&p);
    return p.count - (shuf__slice_wraps(&slice) ? 1 : 0);
}

/* The windows with values: their numbers do not depend on the key, except near the last chunk. So
 * these are one more at each end. */
void find_windows(const shuf__permutation &p, uint64_t *from, uint64_t *to)
{
    const shuf_windows sizes = shuf_windows_of(p.n, p.chunk, p.window);
    const uint64_t records = p.chunk * p.window, count = straight(p);
    const uint64_t last = p.offset + (count ? count - 1 : 0) * p.stride;
    *from = p.offset / records;
    *to = std::min(sizes.windows, (last + sizes.gap) / records + 1);
}

uint64_t slots_of(const shuf__permutation &p)
{
    uint64_t from, to;
    const shuf_windows sizes = shuf_windows_of(p.n, p.chunk, p.window);
    find_windows(p, &from, &to);
    return std::min(sizes.chunks, to * p.window) - from * p.window;
}

template <typename Out>
cudaError_t list_moves(const shuf__permutation &p, const Row &row, Out *moves, cudaStream_t stream)
{
    shuf_key of_chunks, of_windows;
    const uint64_t slots = slots_of(p);
    shuf__permutation chunks{};
    shuf_windowed_keys(&row.order.sizes, shuf__permutation_key(&p), p.epoch, &of_chunks,
                       &of_windows);
    chunks.n = row.order.sizes.chunks;
    chunks.seed = of_chunks.word[0];
    chunks.seed_high = of_chunks.word[1];
    chunks.rows = chunks.stride = 1;
    chunks.offset = row.from * p.window;
    chunks.count = slots;
    chunks.algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    const cudaError_t e = primefold_async(chunks, sizeof(Out), moves, nullptr, stream);
    if (e != cudaSuccess)
        return e;
    make_moves<<<blocks_for(slots, fold_threads), fold_threads, 0, stream>>>(moves, slots, p.window,
                                                                             p.chunk);
    return cudaGetLastError();
}

uint32_t turns_of(const Row &row)
{
    return row.count < many_values ? few_turns : many_turns;
}

/* The windows `from` to `to` - 1, which all have the same number of records. They must not be too
 * many for one launch. */
template <typename Out>
cudaError_t equal_windows(const shuf__permutation &p, const Row &row, uint64_t from, uint64_t to,
                          const Out *moves, Out *out, cudaStream_t stream)
{
    const shuf_window window = shuf_windowed_window(&row.order, from);
    const shuf_primefold_shape shape = shuf__primefold_shape(window.count);
    RowKeys of{};
    of.shape = shape;
    of.key = row.order.key;
    of.epoch = from;
    Windows w{};
    w.first = window.first;
    w.records = window.count;
    w.offset = row.offset;
    w.stride = row.stride;
    w.count = row.count;
    w.chunk = p.chunk;
    w.chunks = p.window;
    w.gap_at = window.gap_at;
    w.gap = window.gap;
    w.base = row.base;
    w.turns = turns_of(row);
    const bool narrow = window.count + window.gap < uint64_t{1} << 31 && p.chunk > 1;
    if (narrow) {
        w.shift = shuf__bits(p.chunk - 1) - 1;
        w.multiplier = static_cast<uint32_t>((uint64_t{1} << (32 + w.shift)) / p.chunk + 1);
        w.gap_at = std::min<uint64_t>(w.gap_at, UINT32_MAX);
    }
    const Out *const list = moves + (from - row.from) * p.window;
    if (shape.maps == 0) {
        exchange_windows<<<static_cast<unsigned>(to - from), 32, 0, stream>>>(of, w, list, out);
        return cudaGetLastError();
    }
    return with_row_form(shape, [&](auto *form, auto maps) {
        using Form = std::remove_pointer_t<decltype(form)>;
        const uint64_t most = std::min((window.count - 1) / row.stride + 1, row.count);
        w.one = Form::distance(row.stride, 1, shape.p);
        w.leap = Form::distance(row.stride, fold_threads * group, shape.p);
        w.parts = blocks_for(most + group, fold_threads * group * w.turns);
        const auto blocks = static_cast<unsigned>((to - from) * w.parts);
        const auto kernel = narrow ? fold_windows<Form, decltype(maps)::value, true, Out>
                                   : fold_windows<Form, decltype(maps)::value, false, Out>;
        kernel<<<blocks, fold_threads, 0, stream>>>(Form(shape), of, w, list, out);
        return cudaGetLastError();
    });
}

constexpr uint64_t launch_blocks = uint64_t{1} << 30;

/* As equal_windows(), in as many launches as needed. */
template <typename Out>
cudaError_t many_windows(const shuf__permutation &p, const Row &row, uint64_t from, uint64_t to,
                         const Out *moves, Out *out, cudaStream_t stream)
{
    const uint64_t values = std::min(p.chunk * p.window, row.count);
    const uint64_t parts = blocks_for(values + group, fold_threads * group * turns_of(row));
    const uint64_t most = std::max<uint64_t>(1, launch_blocks / parts);
    cudaError_t e = cudaSuccess;
    for (; from < to && e == cudaSuccess; from += most)
        e = equal_windows(p, row, from, std::min(to, from + most), moves, out, stream);
    return e;
}

template <typename Out>
cudaError_t one_row(const shuf__permutation &p, const Row &row, Out *moves, Out *out,
                    cudaStream_t stream)
{
    const shuf_windows &sizes = row.order.sizes;
    const uint64_t odd[2] = {sizes.gap ? row.order.last_slot / p.window : sizes.windows,
                             sizes.chunks % p.window ? sizes.windows - 1 : sizes.windows};
    cudaError_t e = list_moves(p, row, moves, stream);
    for (uint64_t from = row.from, to; from < row.to && e == cudaSuccess; from = to) {
        to = row.to;
        for (uint64_t j : odd)
            if (j == from)
                to = from + 1;
            else if (j > from && j < to)
                to = j;
        e = many_windows(p, row, from, to, moves, out, stream);
    }
    return e;
}

/* The last value of a padded shard may wrap around to the front. */
template <typename Out>
cudaError_t put_wrapped(const shuf__permutation &p, const Row &row, Out *out, cudaStream_t stream)
{
    const shuf__slice slice = shuf__slice_make(&p);
    if (!shuf__slice_wraps(&slice))
        return cudaSuccess;
    const uint64_t position = shuf__slice_position(&slice, p.count - 1);
    put_value<<<1, 1, 0, stream>>>(out + p.count - 1,
                                   static_cast<Out>(shuf_windowed_forward(&row.order, position)));
    return cudaGetLastError();
}

template <typename Out>
cudaError_t all_rows(const shuf__computation &computation, Out *out, Out *moves,
                     cudaStream_t stream, bool *cancelled)
{
    const shuf__permutation &p = computation.request.permutation;
    const shuf_windows sizes = shuf_windows_of(p.n, p.chunk, p.window);
    cudaError_t e = cudaSuccess;
    shuf__permutation one = p;
    for (uint64_t r = 0; r < p.rows && e == cudaSuccess; r++) {
        *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
        if (*cancelled)
            return cudaSuccess;
        one.epoch = p.epoch + r;
        Row row{};
        row.order = shuf_windowed_make(&sizes, shuf__permutation_key(&p), one.epoch);
        row.offset = p.offset;
        row.stride = p.stride;
        row.count = straight(p);
        row.base = r * p.count;
        find_windows(p, &row.from, &row.to);
        if (row.count > 0)
            e = one_row(one, row, moves, out + r * p.count, stream);
        if (e == cudaSuccess)
            e = put_wrapped(one, row, out + r * p.count, stream);
    }
    return e;
}

/* The values of a piece that the host computes. */
constexpr uint64_t piece_values = 1 << 18;

/* The copy from pageable memory returns when the values have been read. */
cudaError_t by_host(const shuf__simd_ops *simd, int threads, const shuf__computation &computation,
                    void *out, cudaStream_t stream, bool *cancelled)
{
    const shuf__permutation &p = computation.request.permutation;
    const uint64_t width = width_of(computation), all = p.rows * p.count;
    const std::unique_ptr<uint64_t[]> values(new (std::nothrow)
                                                 uint64_t[std::min(all, piece_values)]);
    shuf__computation part = computation;
    cudaError_t e = values ? cudaSuccess : cudaErrorMemoryAllocation;
    for (uint64_t first = 0, count; first < all && e == cudaSuccess; first += count) {
        count = shuf__slice_take(&p, first, piece_values, &part.request.permutation);
        *cancelled = !shuf__host_windowed(simd, threads, &part, values.get());
        if (*cancelled)
            return cudaSuccess;
        e = cudaMemcpyAsync(static_cast<char *>(out) + first * width, values.get(), count * width,
                            cudaMemcpyHostToDevice, stream);
    }
    return e;
}

} // namespace

/* The list of the chunks would be long. */
bool windowed_is_sparse(const shuf__permutation &p)
{
    return p.stride >= p.chunk * p.window || slots_of(p) / 16 > p.count + 65536;
}

uint64_t windowed_bytes(const shuf__permutation &p, unsigned width)
{
    return windowed_is_sparse(p) ? 0 : slots_of(p) * width;
}

cudaError_t windowed_async(const shuf__simd_ops *simd, int threads,
                           const shuf__computation &computation, void *out, void *scratch,
                           cudaStream_t stream, bool *cancelled)
{
    const shuf__permutation &p = computation.request.permutation;
    *cancelled = false;
    if (windowed_is_sparse(p))
        return by_host(simd, threads, computation, out, stream, cancelled);
    if (width_of(computation) == 4)
        return all_rows(computation, static_cast<uint32_t *>(out), static_cast<uint32_t *>(scratch),
                        stream, cancelled);
    return all_rows(computation, static_cast<uint64_t *>(out), static_cast<uint64_t *>(scratch),
                    stream, cancelled);
}

} // namespace shuf
