/* SPDX-License-Identifier: MIT
 *
 * Exponential streams (shuf/exponential.h) on the GPU.
 */
#include "draws.cuh"
#include "philox.cuh"
#include "shuf/exponential.h"

namespace shuf
{

namespace
{

struct Exponential {
    Words<SHUF_GAUSS_ROUNDS> words;
    shuf_box_muller_terms terms;
    double half;

    explicit Exponential(const shuf_exponential &e)
        : words(e.words), terms(shuf_box_muller_terms_make()), half(e.half)
    {
    }
};

struct F64 {
    using Source = Exponential;
    using Out = double;
    static constexpr int each = 2;

    static __device__ __forceinline__ void values(const Exponential &e, uint64_t draw,
                                                  double (&y)[each])
    {
        const shuf_stream_draw d = draw_words(e.words, draw);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = shuf_exponential_f64_of(&e.terms, e.half, &d, i);
    }
};

struct F32 {
    using Source = Exponential;
    using Out = float;
    static constexpr int each = 4;

    static __device__ __forceinline__ void values(const Exponential &e, uint64_t draw,
                                                  float (&y)[each])
    {
        const shuf_stream_draw d = draw_words(e.words, draw);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = shuf_exponential_f32_of(&e.terms, e.half, &d, i);
    }
};

} // namespace

namespace draws
{
template <> constexpr int quick_threads<F32> = tuning::quick_threads / 2;
}

cudaError_t exponential_async(const shuf__stream &s, shuf_dtype dtype, int sm_count,
                              const Target &to, cudaStream_t stream)
{
    const Exponential e(shuf_exponential_make_keyed(shuf__stream_key(&s), s.stream, s.mean));
    switch (dtype) {
    case SHUF_F64:
        return draws::start<F64>(e, s, sm_count, to, stream);
    case SHUF_F32:
        return draws::start<F32>(e, s, sm_count, to, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t exponential_load()
{
    return draws::load<F64, F32>();
}

} // namespace shuf
