/* SPDX-License-Identifier: MIT
 *
 * Uniform streams (shuf/uniform.h) on the GPU. A draw has four words, which give 16 bytes of
 * values.
 */
#include "draws.cuh"
#include "philox.cuh"
#include "shuf/uniform.h"

namespace shuf
{

namespace
{

/* A type of values. `each` values make the 16 bytes of a draw. Value gives value i of the words. */
template <typename Value> struct Number {
    using Source = Words<SHUF_UNIFORM_ROUNDS>;
    using Out = typename Value::Out;
    static constexpr int each = 16 / sizeof(Out);

    static __device__ __forceinline__ void values(const Source &words, uint64_t draw,
                                                  Out (&y)[each])
    {
        uint32_t word[4];
        words.draw(static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32), word);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = Value::value(word, i);
    }
};

struct ValueU32 {
    using Out = uint32_t;

    static __device__ __forceinline__ uint32_t value(const uint32_t (&word)[4], int i)
    {
        return word[i];
    }
};

struct ValueU64 {
    using Out = uint64_t;

    static __device__ __forceinline__ uint64_t value(const uint32_t (&word)[4], int i)
    {
        return uint64_t{word[2 * i + 1]} << 32 | word[2 * i];
    }
};

struct ValueF32 {
    using Out = float;

    static __device__ __forceinline__ float value(const uint32_t (&word)[4], int i)
    {
        return shuf_uniform_f32_of(word[i]);
    }
};

struct ValueF64 {
    using Out = double;

    static __device__ __forceinline__ double value(const uint32_t (&word)[4], int i)
    {
        return shuf_uniform_f64_of(ValueU64::value(word, i));
    }
};

using U32 = Number<ValueU32>;
using U64 = Number<ValueU64>;
using F32 = Number<ValueF32>;
using F64 = Number<ValueF64>;

} // namespace

cudaError_t uniform_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                          cudaStream_t stream)
{
    const Words<SHUF_UNIFORM_ROUNDS> words(shuf_uniform_make_keyed(shuf__stream_key(&s), s.stream));
    switch (dtype) {
    case SHUF_U32:
        return draws::start<U32>(words, s, sm_count, to, stream);
    case SHUF_U64:
        return draws::start<U64>(words, s, sm_count, to, stream);
    case SHUF_F32:
        return draws::start<F32>(words, s, sm_count, to, stream);
    case SHUF_F64:
        return draws::start<F64>(words, s, sm_count, to, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t uniform_load()
{
    return draws::load<U32, U64, F32, F64>();
}

} // namespace shuf
