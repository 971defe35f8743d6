/* SPDX-License-Identifier: MIT
 *
 * Gaussian streams by Box and Muller's method (shuf/box_muller.h) on the GPU.
 */
#include "draws.cuh"
#include "philox.cuh"
#include "shuf/box_muller.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf
{

namespace
{

struct BoxMuller {
    Words<SHUF_GAUSS_ROUNDS> words;
    shuf_box_muller_terms terms;
    double mean, std;
    float mean_f32, std_f32;

    explicit BoxMuller(const shuf_box_muller &b)
        : words(b.words), terms(shuf_box_muller_terms_make()), mean(b.mean), std(b.std),
          mean_f32(b.mean_f32), std_f32(b.std_f32)
    {
    }
};

/* ---- Types: the values of one draw ---- */

struct F64 {
    using Source = BoxMuller;
    using Out = double;
    static constexpr int each = 2;

    static __device__ __forceinline__ void values(const BoxMuller &b, uint64_t draw,
                                                  double (&y)[each])
    {
        const shuf_stream_draw d = draw_words(b.words, draw);
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
    using Source = BoxMuller;
    using Out = float;
    static constexpr int each = 4;

    static __device__ __forceinline__ void values(const BoxMuller &b, uint64_t draw,
                                                  float (&y)[each])
    {
        four_z(draw_words(b.words, draw), y);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = fmaf(y[i], b.std_f32, b.mean_f32);
    }
};

/* Numbers of 16 bits. */
template <typename Half> struct Halves {
    using Source = BoxMuller;
    using Out = typename Half::Out;
    static constexpr int each = 4;

    static __device__ __forceinline__ void values(const BoxMuller &b, uint64_t draw, Out (&y)[each])
    {
        float z[each];
        four_z(draw_words(b.words, draw), z);
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

} // namespace

namespace draws
{
template <> constexpr int quick_threads<F64> = tuning::quick_threads / 2;
}

cudaError_t box_muller_async(const shuf__stream &s, shuf_dtype dtype, int sm_count,
                             const Target &to, cudaStream_t stream)
{
    const BoxMuller b(shuf_box_muller_make_keyed(shuf__stream_key(&s), s.stream, s.mean, s.std));
    switch (dtype) {
    case SHUF_F64:
        return draws::start<F64>(b, s, sm_count, to, stream);
    case SHUF_F32:
        return draws::start<F32>(b, s, sm_count, to, stream);
    case SHUF_F16:
        return draws::start<F16>(b, s, sm_count, to, stream);
    case SHUF_BF16:
        return draws::start<Bf16>(b, s, sm_count, to, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t box_muller_load()
{
    return draws::load<F64, F32, F16, Bf16>();
}

} // namespace shuf
