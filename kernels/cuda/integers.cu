/* SPDX-License-Identifier: MIT
 *
 * Streams of integers below a bound (shuf/integers.h) on the GPU. A thread computes the values of a
 * draw, and repeats this for the next attempt while one of them is undecided.
 */
#include "draws.cuh"
#include "philox.cuh"
#include "shuf/integers.h"

namespace shuf
{

namespace
{

struct Integers {
    Words<SHUF_UNIFORM_ROUNDS> words;
    shuf_integers stream;

    explicit Integers(const shuf_integers &s) : words(s.words), stream(s)
    {
    }
};

/* A type of values. Value::set() sets value i of the words, and tells whether they decide it. */
template <typename Value> struct Number {
    using Source = Integers;
    using Out = typename Value::Out;
    static constexpr int each = 16 / sizeof(Out);

    static __device__ __forceinline__ void values(const Integers &s, uint64_t draw, Out (&y)[each])
    {
        uint32_t open = (1u << each) - 1;
        for (uint32_t attempt = 0; open != 0; attempt++) {
            uint32_t c[4] = {static_cast<uint32_t>(draw), static_cast<uint32_t>(draw >> 32),
                             s.words.high[0] ^ attempt, s.words.high[1]};
            s.words.template rounds<0, SHUF_UNIFORM_ROUNDS>(c);
#pragma unroll
            for (int i = 0; i < each; i++)
                if ((open >> i & 1) != 0 && Value::set(s.stream, c, i, &y[i]))
                    open ^= 1u << i;
        }
    }
};

struct ValueU32 {
    using Out = uint32_t;

    static __device__ __forceinline__ bool set(const shuf_integers &s, const uint32_t (&word)[4],
                                               int i, uint32_t *y)
    {
        return shuf_integers_u32_of(&s, word[i], y);
    }
};

struct ValueU64 {
    using Out = uint64_t;

    static __device__ __forceinline__ bool set(const shuf_integers &s, const uint32_t (&word)[4],
                                               int i, uint64_t *y)
    {
        return shuf_integers_u64_of(&s, uint64_t{word[2 * i + 1]} << 32 | word[2 * i], y);
    }
};

using U32 = Number<ValueU32>;
using U64 = Number<ValueU64>;

} // namespace

cudaError_t integers_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                           cudaStream_t stream)
{
    const Integers i(shuf_integers_make_keyed(shuf__stream_key(&s), s.stream, s.bound));
    switch (dtype) {
    case SHUF_U32:
        return draws::start<U32>(i, s, sm_count, to, stream);
    case SHUF_U64:
        return draws::start<U64>(i, s, sm_count, to, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t integers_load()
{
    return draws::load<U32, U64>();
}

} // namespace shuf
