/* SPDX-License-Identifier: MIT
 *
 * `primefold` on the GPU: one row, or look-ups in it. primefold_rows.cu computes many rows.
 */
#include "permute.cuh"

#include "fold_forms.cuh"
#include "fold_rows.cuh"
#include "quick.cuh"
#include "simd/primefold.h"
#include "tuning.cuh"

namespace shuf
{

namespace
{

/* Computes a row. The keys are parameters of the kernel. A block computes `tiles` tiles. With
 * RangeCheck::off, fold_beyond must then correct the wrong values and the values of n or more. */
template <typename Form, typename Out>
__global__ void __launch_bounds__(fold_threads, fold_blocks_per_sm<Form, Out>)
    fold_row(__grid_constant__ const Form f,
             __grid_constant__ const Steps<typename Form::Word> steps,
             __grid_constant__ const Rows rows, uint32_t tiles, Out *out)
{
    const uint32_t values = tiles * fold_tile<Form>;
    const uint64_t first = uint64_t{blockIdx.x} * values;
    tiles_of_row(f, f.row, rows, steps, first, values, out + first);
}

/* The numbers that a form without a range check may get wrong:
 *
 * - after each map, the numbers below `small`, which may be too large by p
 * - before each fold, the numbers of `whole` or more, which should not be folded
 * - at the end, the values of n or more */
struct Beyond {
    uint32_t small, folds, all; /* the bound; how many numbers before the end; how many in all */
};

/* Follows wrong number k back to its position, and writes the right value there. */
template <int Maps, typename Out>
__device__ __forceinline__ void
correct(const Fold32<Maps> &f, const Fold32<Maps, Direction::inverse> &back, const Beyond &beyond,
        const Rows &rows, uint32_t k, Out *out)
{
    const uint32_t each = f.p - f.whole + beyond.small; /* wrong numbers after each map */
    const bool at_the_end = k >= beyond.folds;
    const int maps_after = at_the_end ? 0 : Maps - 1 - static_cast<int>(k / each);
    uint32_t number = at_the_end ? k - beyond.folds : k % each;
    if (number >= beyond.small)
        number += (at_the_end ? f.n : f.whole) - beyond.small;
    uint32_t x = number;
#pragma unroll
    for (int r = 0; r < Maps; r++) {
        if (r > 0 && r > maps_after && x < f.whole)
            x = fold_of<Direction::inverse, Fold32<Maps>::shift>(x, back.row.map[r - 1].fold);
        if (r >= maps_after)
            x = back.mapped(back.row, r, x);
    }
    if (x < f.n && x - rows.offset < rows.count) {
        const bool is_value = at_the_end && number < f.n;
        out[x - rows.offset] =
            static_cast<Out>(is_value ? number : cycle_walk(f, f.row, at_the_end ? number : x));
    }
}

template <int Maps, typename Out>
__global__ void __launch_bounds__(fold_threads)
    fold_beyond(__grid_constant__ const Fold32<Maps> f,
                __grid_constant__ const Fold32<Maps, Direction::inverse> back,
                __grid_constant__ const Beyond beyond, __grid_constant__ const Rows rows, Out *out)
{
    const uint32_t k = blockIdx.x * fold_threads + threadIdx.x;
    if (k < beyond.all)
        correct(f, back, beyond, rows, k, out);
}

/* For quick_async(): one block, with four values for each thread. */
template <typename Form, typename Out>
__global__ void __launch_bounds__(tuning::quick_threads)
    fold_quick(__grid_constant__ const Form f,
               __grid_constant__ const Steps<typename Form::Word> steps,
               __grid_constant__ const Rows rows, __grid_constant__ const Signal signal, Out *out)
{
    const uint64_t i = threadIdx.x * group;
    if (i < rows.count) {
        typename Form::Word x[1][group];
        spread(f, f.start(f.row, rows.offset + i * rows.stride), steps.one, x[0]);
        uint32_t met = 0;
        f.evaluate_unchecked(f.row, x, met);
        uint32_t again = finished(f, met, x[0]) ? 0 : unfinished(f, met, x[0]);
        if (i + group <= rows.whole) {
            put_group(out + i, x[0]);
        } else {
            put_some(out + i, x[0], rows.count - i);
            if (rows.wraps && i + group >= rows.count)
                again |= 1u << (rows.count - 1 - i);
        }
#pragma unroll 1
        for (; again != 0; again &= again - 1) {
            const uint64_t at = i + (__ffs(static_cast<int>(again)) - 1);
            if (at < rows.count)
                repair(f, f.row, rows, at, out + at);
        }
    }
    signal_done(signal);
}

/* Sets values[i] to the value at position at[i], or with an inverse form to the position of value
 * at[i]. Both arrays begin at a multiple of 16 bytes. A number of n or more has no value, and no
 * form may get it. */
template <typename Form, typename Value>
__global__ void __launch_bounds__(fold_threads, Form::look_up_blocks_per_sm)
    fold_look_up(__grid_constant__ const Form f, uint64_t n, uint64_t count, const Value *at,
                 Value *values)
{
    const uint64_t i = (uint64_t{blockIdx.x} * fold_threads + threadIdx.x) * group;
    Value position[group] = {};
    typename Form::Word x[group];
    uint32_t outside = 0;
    if (i + group <= count)
        load_group(at + i, position);
    else
        for (int c = 0; c < group; c++)
            position[c] = i + c < count ? at[i + c] : 0;
#pragma unroll
    for (int c = 0; c < group; c++)
        if (position[c] >= n) {
            position[c] = 0;
            outside |= 1u << c;
        }
    look_up_group(f, position, x);
    if (i + group <= count)
        put_group(values + i, x);
    else if (i < count)
        put_some(values + i, x, count - i);
    for (; outside != 0; outside &= outside - 1)
        values[i + (__ffs(static_cast<int>(outside)) - 1)] = static_cast<Value>(-1);
}

/* For n <= SHUF_PRIMEFOLD_EXACT: a thread follows a position through the exchanges. */
struct Exchanges {
    uint32_t n;
    uint8_t with[SHUF_PRIMEFOLD_EXACT];

    __device__ __forceinline__ uint32_t exchanged(uint32_t x, uint32_t k) const
    {
        const uint32_t other = with[k];
        return x == k ? other : x == other ? k : x;
    }
};

template <typename Out>
__global__ void __launch_bounds__(tuning::quick_threads)
    exchange_quick(__grid_constant__ const Exchanges e, __grid_constant__ const Rows rows,
                   __grid_constant__ const Signal signal, Out *out)
{
    if (threadIdx.x < rows.count) {
        auto x = static_cast<uint32_t>((rows.offset + threadIdx.x * rows.stride) % e.n);
        for (uint32_t k = 1; k < e.n; k++)
            x = e.exchanged(x, k);
        out[threadIdx.x] = static_cast<Out>(x);
    }
    signal_done(signal);
}

/* As fold_look_up. The inverse does the exchanges in reverse order. */
template <typename Value>
__global__ void __launch_bounds__(fold_threads)
    exchange_look_up(__grid_constant__ const Exchanges e, bool inverse, uint64_t count,
                     const Value *at, Value *values)
{
    const uint64_t i = uint64_t{blockIdx.x} * fold_threads + threadIdx.x;
    if (i >= count)
        return;
    const Value from = at[i];
    auto x = static_cast<uint32_t>(from);
    for (uint32_t k = 1; k < e.n; k++)
        x = e.exchanged(x, inverse ? e.n - k : k);
    values[i] = from < e.n ? static_cast<Value>(x) : static_cast<Value>(-1);
}

/* No more threads than the values need, because a block takes as long as its slowest warp. */
unsigned quick_threads_for(uint64_t values, uint64_t each)
{
    return 32 * blocks_for(values, 32 * each);
}

template <typename Form, typename Out>
cudaError_t fold_row_async(const Form &f, const Rows &rows, const shuf__permutation &p,
                           const shuf_primefold_shape &shape, Out *out, cudaStream_t stream)
{
    const uint64_t many = blocks_for(p.count, fold_tile<Form>) / tuning::fold_blocks;
    const uint64_t tiles = many < 1 ? 1 : many < tuning::fold_tiles ? many : tuning::fold_tiles;
    fold_row<<<blocks_for(p.count, fold_tile<Form> * tiles), fold_threads, 0, stream>>>(
        f, make_steps(f, shape.p, p.stride), rows, static_cast<uint32_t>(tiles), out);
    return cudaGetLastError();
}

template <typename Out, typename Of>
cudaError_t one_row(Of of, const shuf__permutation &p, const shuf_primefold_shape &shape, Out *out,
                    const Signal *signal, cudaStream_t stream)
{
    using Form = typename Of::Form;
    const Form f = of.make(p, shape);
    const Rows rows = make_rows_for<Form>(p, shape.p);
    if (!signal)
        return fold_row_async(f, rows, p, shape, out, stream);
    fold_quick<<<1, quick_threads_for(p.count, group), 0, stream>>>(
        f, make_steps(f, shape.p, p.stride), rows, *signal, out);
    return cudaGetLastError();
}

/* For p < 2^31. */
template <int Maps> Beyond beyond_of(const shuf_primefold_shape &shape)
{
    const uint64_t small = Fold32<Maps>::small(shape);
    const uint64_t folds = (shape.p - shape.whole + small) * (Maps - 1);
    const uint64_t all = folds + shape.p - shape.n + small;
    return {static_cast<uint32_t>(small), static_cast<uint32_t>(folds), static_cast<uint32_t>(all)};
}

/* Computes neighbouring values of a row without range checks, and then corrects the wrong ones. */
template <int Maps, typename Out>
cudaError_t large_row(const shuf__permutation &p, const shuf_primefold_shape &shape, Out *out,
                      cudaStream_t stream)
{
    const auto f = FormOf<Fold32<Maps>>::make(p, shape);
    const auto back = FormOf<Fold32<Maps, Direction::inverse>, Direction::inverse>::make(p, shape);
    const auto unchecked =
        FormOf<Fold32<Maps, Direction::forward, RangeCheck::off>>::make(p, shape);
    const Rows rows = make_rows_for<Fold32<Maps>>(p, shape.p);
    const Beyond beyond = beyond_of<Maps>(shape);
    const cudaError_t e = fold_row_async(unchecked, rows, p, shape, out, stream);
    if (e != cudaSuccess)
        return e;
    fold_beyond<<<blocks_for(beyond.all, fold_threads), fold_threads, 0, stream>>>(f, back, beyond,
                                                                                   rows, out);
    return cudaGetLastError();
}

/* Whether few enough values need a correction. */
template <int Maps> bool is_large_row(const shuf__permutation &p, const shuf_primefold_shape &shape)
{
    return p.count >= tuning::fold_large && p.stride == 1 && p.offset + p.count <= p.n &&
           shape.p >> 31 == 0 && beyond_of<Maps>(shape).all <= p.count / tuning::fold_values_each;
}

Exchanges exchanges_of(const shuf__permutation &p)
{
    const shuf_primefold key = shuf_primefold_make_keyed(p.n, shuf__permutation_key(&p), p.epoch);
    Exchanges e{static_cast<uint32_t>(p.n), {}};
    for (unsigned k = 1; k < e.n; k++)
        e.with[k] = key.exchange[k];
    return e;
}

template <typename Out>
cudaError_t exchange(const shuf__permutation &p, void *out, const Signal &signal,
                     cudaStream_t stream)
{
    exchange_quick<<<1, quick_threads_for(p.count, 1), 0, stream>>>(
        exchanges_of(p), make_rows(p), signal, static_cast<Out *>(out));
    return cudaGetLastError();
}

/* `signal` is not NULL only for a single row. */
template <typename Out>
cudaError_t start(const shuf__permutation &p, void *out, const Signal *signal, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(p.n);
    if (shape.maps == 0 && signal)
        return exchange<Out>(p, out, *signal, stream);
    if (shape.maps == 0 || p.rows > 1)
        return primefold_rows_async(p, sizeof(Out), shape, out, stream);
    constexpr int maps = SHUF_PRIMEFOLD_MAPS_LARGE_62;
    if (!signal && is_large_row<maps>(p, shape))
        return large_row<maps>(p, shape, static_cast<Out *>(out), stream);
    return with_form(shape, [&](auto of) {
        return one_row(of, p, shape, static_cast<Out *>(out), signal, stream);
    });
}

template <Direction direction, typename Value>
cudaError_t start_look_up(const shuf__permutation &p, const Value *at, Value *values,
                          uint64_t count, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(p.n);
    if (shape.maps == 0) {
        exchange_look_up<<<blocks_for(count, fold_threads), fold_threads, 0, stream>>>(
            exchanges_of(p), direction == Direction::inverse, count, at, values);
        return cudaGetLastError();
    }
    return with_form<direction>(shape, [&](auto of) {
        fold_look_up<<<blocks_for(count, uint64_t{fold_threads} * group), fold_threads, 0,
                       stream>>>(of.make(p, shape), p.n, count, at, values);
        return cudaGetLastError();
    });
}

template <typename Value>
cudaError_t look_up(const shuf__look_up &l, const void *at, void *values, uint64_t count,
                    cudaStream_t stream)
{
    const auto *from = static_cast<const Value *>(at);
    auto *to = static_cast<Value *>(values);
    return l.inverse ? start_look_up<Direction::inverse>(l.permutation, from, to, count, stream)
                     : start_look_up<Direction::forward>(l.permutation, from, to, count, stream);
}

template <typename Kernel> void load(cudaError_t &e, Kernel kernel)
{
    cudaFuncAttributes attributes;
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&attributes, kernel);
}

template <typename Out> void load_all(cudaError_t &e)
{
    load(e, exchange_quick<Out>);
    load(e, fold_quick<Fold16<SHUF_PRIMEFOLD_MAPS, false>, Out>);
    load(e, fold_quick<Fold32<SHUF_PRIMEFOLD_MAPS_LARGE_21>, Out>);
    load(e, fold_quick<Fold32<SHUF_PRIMEFOLD_MAPS_LARGE_62>, Out>);
    load(e, fold_quick<Fold32Whole<SHUF_PRIMEFOLD_MAPS_LARGE_62>, Out>);
    load(e, fold_quick<FoldDouble<SHUF_PRIMEFOLD_MAPS_LARGE_62>, Out>);
    load(e, fold_quick<Fold64<SHUF_PRIMEFOLD_MAPS_LARGE_62>, Out>);
}

} // namespace

bool primefold_is_corrected(const shuf__permutation &p)
{
    return is_large_row<SHUF_PRIMEFOLD_MAPS_LARGE_62>(p, shuf__primefold_shape(p.n));
}

cudaError_t primefold_async(const shuf__permutation &p, unsigned width, void *out,
                            const Signal *signal, cudaStream_t stream)
{
    return width == 4 ? start<uint32_t>(p, out, signal, stream)
                      : start<uint64_t>(p, out, signal, stream);
}

cudaError_t primefold_look_up_async(const shuf__look_up &l, unsigned width, const void *at,
                                    void *values, uint64_t count, cudaStream_t stream)
{
    return width == 4 ? look_up<uint32_t>(l, at, values, count, stream)
                      : look_up<uint64_t>(l, at, values, count, stream);
}

cudaError_t primefold_load()
{
    cudaError_t e = cudaSuccess;
    load_all<uint32_t>(e);
    load_all<uint64_t>(e);
    return e;
}

} // namespace shuf
