/* SPDX-License-Identifier: MIT
 *
 * Bernoulli streams (shuf/bernoulli.h) on the GPU. A thread computes 128 bits at a time, and
 * compares digits until all of them are decided.
 */
#include "draws.cuh"
#include "philox.cuh"
#include "shuf/bernoulli.h"

namespace shuf
{

namespace
{

struct Bernoulli {
    Words<SHUF_BERNOULLI_ROUNDS> words;
    uint64_t threshold;

    explicit Bernoulli(const shuf_bernoulli &b) : words(b.words), threshold(b.threshold)
    {
    }
};

/* Does the same as shuf_bernoulli_group(), with precomputed round keys. */
__device__ __forceinline__ void group(const Bernoulli &b, uint64_t number, uint32_t (&less)[4])
{
    shuf__bernoulli_bits bits[4];
    uint32_t open = 1;
#pragma unroll
    for (int i = 0; i < 4; i++)
        bits[i] = shuf__bernoulli_begin(b.threshold);
    uint64_t rest = b.threshold << 1;
    for (uint32_t digit = 0; rest != 0 && open != 0; digit++, rest <<= 1) {
        uint32_t c[4] = {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                         b.words.high[0] ^ digit, b.words.high[1]};
        b.words.rounds<0, SHUF_BERNOULLI_ROUNDS>(c);
        open = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            shuf__bernoulli_compare(&bits[i], c[i], 0 - static_cast<uint32_t>(rest >> 63));
            open |= bits[i].equal;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        less[i] = bits[i].less;
}

struct U32 {
    using Source = Bernoulli;
    using Out = uint32_t;
    static constexpr int each = 4;

    static __device__ __forceinline__ void values(const Bernoulli &b, uint64_t draw,
                                                  uint32_t (&y)[each])
    {
        group(b, draw, y);
    }
};

struct U64 {
    using Source = Bernoulli;
    using Out = uint64_t;
    static constexpr int each = 2;

    static __device__ __forceinline__ void values(const Bernoulli &b, uint64_t draw,
                                                  uint64_t (&y)[each])
    {
        uint32_t word[4];
        group(b, draw, word);
#pragma unroll
        for (int i = 0; i < each; i++)
            y[i] = uint64_t{word[2 * i + 1]} << 32 | word[2 * i];
    }
};

} // namespace

cudaError_t bernoulli_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                            cudaStream_t stream)
{
    const Bernoulli b(shuf_bernoulli_make_keyed(shuf__stream_key(&s), s.stream, s.mean));
    switch (dtype) {
    case SHUF_U32:
        return draws::start<U32>(b, s, sm_count, to, stream);
    case SHUF_U64:
        return draws::start<U64>(b, s, sm_count, to, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t bernoulli_load()
{
    return draws::load<U32, U64>();
}

} // namespace shuf
