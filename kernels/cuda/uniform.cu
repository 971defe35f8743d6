/* SPDX-License-Identifier: MIT
 *
 * Uniform streams (shuf/uniform.h) on the GPU. A draw has four words, which give 16 bytes of
 * values. A thread stores them with one instruction if their address is a multiple of 16.
 */
#include "stream.cuh"

#include "philox.cuh"
#include "shuf/uniform.h"
#include "tuning.cuh"

namespace shuf
{

namespace
{

constexpr uint64_t block = uint64_t{tuning::uniform_threads} * tuning::uniform_draws;

struct Uniform {
    Words<SHUF_UNIFORM_ROUNDS> words;
    uint64_t offset, count, first; /* offset and count of the request; number of the first draw */

    Uniform(const shuf__stream &s, uint64_t each)
        : words(shuf_uniform_make_keyed(shuf__stream_key(&s), s.stream)), offset(s.offset),
          count(s.count), first(s.offset / each)
    {
    }
};

/* The types of values. `each` values make the 16 bytes of a draw. */
struct U32 {
    using Out = uint32_t;
    static constexpr int each = 4;

    static __device__ __forceinline__ uint32_t value(const uint32_t (&word)[4], int i)
    {
        return word[i];
    }
};

struct U64 {
    using Out = uint64_t;
    static constexpr int each = 2;

    static __device__ __forceinline__ uint64_t value(const uint32_t (&word)[4], int i)
    {
        return uint64_t{word[2 * i + 1]} << 32 | word[2 * i];
    }
};

struct F32 {
    using Out = float;
    static constexpr int each = 4;

    static __device__ __forceinline__ float value(const uint32_t (&word)[4], int i)
    {
        return shuf_uniform_f32_of(word[i]);
    }
};

struct F64 {
    using Out = double;
    static constexpr int each = 2;

    static __device__ __forceinline__ double value(const uint32_t (&word)[4], int i)
    {
        return shuf_uniform_f64_of(U64::value(word, i));
    }
};

template <typename Out, int Each> struct alignas(16) Group {
    Out value[Each];
};

/* Stores the values of a draw. With Whole, the computation has all of them, and their address is a
 * multiple of 16 bytes. */
template <typename Number, bool Whole>
__device__ __forceinline__ void draw(const Uniform &u, uint64_t draw_number, bool aligned,
                                     typename Number::Out *out)
{
    constexpr int each = Number::each;
    uint32_t word[4];
    Group<typename Number::Out, each> group;
    const uint64_t at = draw_number * each - u.offset; /* may wrap in the first draw */
    u.words.draw(static_cast<uint32_t>(draw_number), static_cast<uint32_t>(draw_number >> 32),
                 word);
#pragma unroll
    for (int i = 0; i < each; i++)
        group.value[i] = Number::value(word, i);
    const bool at_once = Whole || (aligned && at + each <= u.count && at < u.count);
    if (at_once)
        *reinterpret_cast<Group<typename Number::Out, each> *>(out + at) = group;
#pragma unroll
    for (int i = 0; i < each; i++)
        if (!at_once && at + i < u.count)
            out[at + i] = group.value[i];
}

/* Block 0 begins with draw number `first`. Each other block continues where the block before it
 * ends. */
template <typename Number, bool Whole>
__global__ void __launch_bounds__(tuning::uniform_threads)
    uniform_all(__grid_constant__ const Uniform u, uint64_t first, typename Number::Out *out)
{
    const bool aligned = u.offset % Number::each == 0;
    const uint64_t mine = first + uint64_t{blockIdx.x} * block + threadIdx.x;
#pragma unroll
    for (int i = 0; i < tuning::uniform_draws; i++)
        draw<Number, Whole>(u, mine + i * tuning::uniform_threads, aligned, out);
}

template <typename Number>
__global__ void __launch_bounds__(tuning::quick_threads)
    uniform_quick(__grid_constant__ const Uniform u, __grid_constant__ const Signal signal,
                  typename Number::Out *out)
{
    const bool aligned = u.offset % Number::each == 0;
    for (uint64_t i = threadIdx.x; i * Number::each < u.count + Number::each; i += blockDim.x)
        draw<Number, false>(u, u.first + i, aligned, out);
    signal_done(signal);
}

template <typename Number, bool Whole>
void launch(const Uniform &u, uint64_t first, uint64_t blocks, typename Number::Out *out,
            cudaStream_t stream)
{
    uniform_all<Number, Whole>
        <<<static_cast<unsigned>(blocks), tuning::uniform_threads, 0, stream>>>(u, first, out);
}

/* Blocks whose draws are all whole take a path without conditions, because conditions would cost a
 * quarter of the rate. If draws do not begin at multiples of 16 bytes, all blocks take the slower
 * path. */
template <typename Number>
cudaError_t draw_all(const Uniform &u, uint64_t draws, typename Number::Out *out,
                     cudaStream_t stream)
{
    const uint64_t whole = u.offset % Number::each == 0 ? u.count / Number::each / block : 0;
    const uint64_t others = (draws - whole * block + block - 1) / block;
    if (whole)
        launch<Number, true>(u, u.first, whole, out, stream);
    if (others)
        launch<Number, false>(u, u.first + whole * block, others, out, stream);
    return cudaGetLastError();
}

template <typename Number>
cudaError_t start(const shuf__stream &s, void *out, const Signal *signal, cudaStream_t stream)
{
    constexpr uint64_t each = Number::each;
    const Uniform u(s, each);
    auto *const to = static_cast<typename Number::Out *>(out);
    const uint64_t draws = (s.offset + s.count - 1) / each - u.first + 1;
    if (!signal)
        return draw_all<Number>(u, draws, to, stream);
    const uint64_t threads = (draws + 31) / 32 * 32;
    uniform_quick<Number>
        <<<1,
           static_cast<unsigned>(threads < tuning::quick_threads ? threads : tuning::quick_threads),
           0, stream>>>(u, *signal, to);
    return cudaGetLastError();
}

} // namespace

cudaError_t uniform_async(const shuf__stream &s, shuf_dtype dtype, void *out, const Signal *signal,
                          cudaStream_t stream)
{
    switch (dtype) {
    case SHUF_U32:
        return start<U32>(s, out, signal, stream);
    case SHUF_U64:
        return start<U64>(s, out, signal, stream);
    case SHUF_F32:
        return start<F32>(s, out, signal, stream);
    case SHUF_F64:
        return start<F64>(s, out, signal, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t uniform_load()
{
    cudaFuncAttributes a;
    cudaError_t e = cudaFuncGetAttributes(&a, uniform_quick<U32>);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, uniform_quick<U64>);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, uniform_quick<F32>);
    return e == cudaSuccess ? cudaFuncGetAttributes(&a, uniform_quick<F64>) : e;
}

} // namespace shuf
