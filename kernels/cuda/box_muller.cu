/* SPDX-License-Identifier: MIT
 *
 * Gaussian streams by Box and Muller's method (shuf/box_muller.h) on the GPU. A thread computes all
 * values of a draw. If their address is a multiple of their size, it stores them with one
 * instruction.
 */
#include "stream.cuh"

#include "philox.cuh"
#include "shuf/box_muller.h"
#include "tuning.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf
{

namespace
{

constexpr uint64_t block = uint64_t{tuning::box_muller_threads} * tuning::box_muller_draws;

struct BoxMuller {
    Words<SHUF_GAUSS_ROUNDS> words;
    shuf_box_muller_terms terms;
    double mean, std;
    float mean_f32, std_f32;
    uint64_t offset, count, first; /* offset and count of the request; number of the first draw */

    BoxMuller(const shuf_box_muller &b, const shuf__stream &s, uint64_t each)
        : words(b.words), terms(shuf_box_muller_terms_make()), mean(b.mean), std(b.std),
          mean_f32(b.mean_f32), std_f32(b.std_f32), offset(s.offset), count(s.count),
          first(s.offset / each)
    {
    }
};

/* Does the same as shuf_stream_draw_make(), with precomputed round keys. */
__device__ __forceinline__ shuf_stream_draw draw_words(const Words<SHUF_GAUSS_ROUNDS> &words,
                                                       uint64_t index)
{
    shuf_stream_draw d;
    uint32_t c0 = static_cast<uint32_t>(index), c1 = words.high[0];
    uint32_t c2 = static_cast<uint32_t>(index >> 32), c3 = words.high[1];
#pragma unroll
    for (int r = 0; r < SHUF_GAUSS_ROUNDS; r++) {
        if (r == SHUF_GAUSS_EARLY_ROUNDS) {
            d.early[0] = c0;
            d.early[1] = c1;
            d.early[2] = c2;
            d.early[3] = c3;
        }
        const uint64_t left = uint64_t{SHUF_PHILOX4X32_M0} * c0;
        const uint64_t right = uint64_t{SHUF_PHILOX4X32_M1} * c2;
        c0 = static_cast<uint32_t>(right >> 32) ^ c1 ^ words.key[r][0];
        c1 = static_cast<uint32_t>(right);
        c2 = static_cast<uint32_t>(left >> 32) ^ c3 ^ words.key[r][1];
        c3 = static_cast<uint32_t>(left);
    }
    d.word[0] = c0;
    d.word[1] = c1;
    d.word[2] = c2;
    d.word[3] = c3;
    return d;
}

/* ---- Types: the values of one draw ---- */

struct F64 {
    using Out = double;
    static constexpr int each = 2;

    static __device__ __forceinline__ void values(const BoxMuller &b, const shuf_stream_draw &d,
                                                  double (&y)[each])
    {
        const shuf_box_muller_wide words = shuf_box_muller_wide_of(&d);
        double z[each];
        shuf_box_muller_pair_f64(&b.terms, &words, z);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = fma(z[i], b.std, b.mean);
    }
};

__device__ __forceinline__ void four_z(const shuf_stream_draw &d, float (&z)[4])
{
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        const shuf_box_muller_words words = shuf_box_muller_words_of(&d, pair);
        shuf_box_muller_pair_f32(&words, z + 2 * pair);
    }
}

struct F32 {
    using Out = float;
    static constexpr int each = 4;

    static __device__ __forceinline__ void values(const BoxMuller &b, const shuf_stream_draw &d,
                                                  float (&y)[each])
    {
        four_z(d, y);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = fmaf(y[i], b.std_f32, b.mean_f32);
    }
};

/* Numbers of 16 bits. */
template <typename Half> struct Halves {
    using Out = typename Half::Out;
    static constexpr int each = 4;

    static __device__ __forceinline__ void values(const BoxMuller &b, const shuf_stream_draw &d,
                                                  Out (&y)[each])
    {
        float z[each];
        four_z(d, z);
#pragma unroll
        for (int i = 0; i < each; i++)
            z[i] = fmaf(__uint_as_float(__float_as_uint(z[i]) | 1), b.std_f32, b.mean_f32);
#pragma unroll
        for (int i = 0; i < each; i += 2)
            *reinterpret_cast<typename Half::Pair *>(y + i) = Half::pair(z[i], z[i + 1]);
    }
};

struct OfF16 {
    using Out = __half;
    using Pair = __half2;

    static __device__ __forceinline__ __half2 pair(float a, float b)
    {
        return __floats2half2_rn(a, b);
    }
};

struct OfBf16 {
    using Out = __nv_bfloat16;
    using Pair = __nv_bfloat162;

    static __device__ __forceinline__ __nv_bfloat162 pair(float a, float b)
    {
        return __floats2bfloat162_rn(a, b);
    }
};

using F16 = Halves<OfF16>;
using Bf16 = Halves<OfBf16>;

/* ---- Kernels ---- */

template <typename Out, int Each> struct alignas(sizeof(Out) * Each) Group {
    Out value[Each];
};

/* Stores the values of a draw. With Whole, the computation has all of them, and their address is a
 * multiple of their size. */
template <typename Number, bool Whole>
__device__ __forceinline__ void draw(const BoxMuller &b, uint64_t draw_number, bool aligned,
                                     typename Number::Out *out)
{
    constexpr int each = Number::each;
    Group<typename Number::Out, each> group;
    const uint64_t at = draw_number * each - b.offset; /* may wrap in the first draw */
    Number::values(b, draw_words(b.words, draw_number), group.value);
    const bool at_once = Whole || (aligned && at + each <= b.count && at < b.count);
    if (at_once)
        *reinterpret_cast<Group<typename Number::Out, each> *>(out + at) = group;
#pragma unroll
    for (int i = 0; i < each; i++)
        if (!at_once && at + i < b.count)
            out[at + i] = group.value[i];
}

/* Block 0 begins with draw number `first`. Each other block continues where the block before it
 * ends. */
template <typename Number, bool Whole>
__global__ void __launch_bounds__(tuning::box_muller_threads)
    box_muller_all(__grid_constant__ const BoxMuller b, uint64_t first, typename Number::Out *out)
{
    const bool aligned = b.offset % Number::each == 0;
    const uint64_t mine = first + uint64_t{blockIdx.x} * block + threadIdx.x;
#pragma unroll
    for (int i = 0; i < tuning::box_muller_draws; i++)
        draw<Number, Whole>(b, mine + i * tuning::box_muller_threads, aligned, out);
}

template <typename Number>
__global__ void __launch_bounds__(tuning::quick_threads)
    box_muller_quick(__grid_constant__ const BoxMuller b, __grid_constant__ const Signal signal,
                     typename Number::Out *out)
{
    const bool aligned = b.offset % Number::each == 0;
    for (uint64_t i = threadIdx.x; i * Number::each < b.count + Number::each; i += blockDim.x)
        draw<Number, false>(b, b.first + i, aligned, out);
    signal_done(signal);
}

/* ---- Launching ---- */

template <typename Number, bool Whole>
void launch(const BoxMuller &b, uint64_t first, uint64_t blocks, typename Number::Out *out,
            cudaStream_t stream)
{
    box_muller_all<Number, Whole>
        <<<static_cast<unsigned>(blocks), tuning::box_muller_threads, 0, stream>>>(b, first, out);
}

/* As in uniform.cu, blocks whose draws are all whole take a path without conditions. */
template <typename Number>
cudaError_t draw_all(const BoxMuller &b, uint64_t draws, typename Number::Out *out,
                     cudaStream_t stream)
{
    const uint64_t whole = b.offset % Number::each == 0 ? b.count / Number::each / block : 0;
    const uint64_t others = (draws - whole * block + block - 1) / block;
    if (whole)
        launch<Number, true>(b, b.first, whole, out, stream);
    if (others)
        launch<Number, false>(b, b.first + whole * block, others, out, stream);
    return cudaGetLastError();
}

template <typename Number>
cudaError_t start(const shuf__stream &s, void *out, const Signal *signal, cudaStream_t stream)
{
    constexpr uint64_t each = Number::each;
    const BoxMuller b(shuf_box_muller_make_keyed(shuf__stream_key(&s), s.stream, s.mean, s.std), s,
                      each);
    auto *const to = static_cast<typename Number::Out *>(out);
    const uint64_t draws = (s.offset + s.count - 1) / each - b.first + 1;
    if (!signal)
        return draw_all<Number>(b, draws, to, stream);
    const uint64_t threads = (draws + 31) / 32 * 32;
    box_muller_quick<Number>
        <<<1,
           static_cast<unsigned>(threads < tuning::quick_threads ? threads : tuning::quick_threads),
           0, stream>>>(b, *signal, to);
    return cudaGetLastError();
}

} // namespace

cudaError_t box_muller_async(const shuf__stream &s, shuf_dtype dtype, void *out,
                             const Signal *signal, cudaStream_t stream)
{
    switch (dtype) {
    case SHUF_F64:
        return start<F64>(s, out, signal, stream);
    case SHUF_F32:
        return start<F32>(s, out, signal, stream);
    case SHUF_F16:
        return start<F16>(s, out, signal, stream);
    case SHUF_BF16:
        return start<Bf16>(s, out, signal, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t box_muller_load()
{
    cudaFuncAttributes a;
    cudaError_t e = cudaFuncGetAttributes(&a, box_muller_quick<F64>);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, box_muller_quick<F32>);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&a, box_muller_quick<F16>);
    return e == cudaSuccess ? cudaFuncGetAttributes(&a, box_muller_quick<Bf16>) : e;
}

} // namespace shuf
