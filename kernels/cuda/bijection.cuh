/* SPDX-License-Identifier: MIT
 *
 * The bijections of philox24 and lcg on the GPU. They give the same numbers as the inline C in
 * shuf/, but use 32-bit registers, and each thread computes several values.
 *
 * A bijection is a struct that the host makes for n. Its evaluate(key, x) replaces each x[i] by
 * f(x[i]). `key` points to the 24 key words of a row in shared memory. Word is uint32_t if B <= 32,
 * else uint64_t.
 */
#ifndef SHUF__CUDA_BIJECTION_CUH
#define SHUF__CUDA_BIJECTION_CUH

#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "tuning.cuh"

namespace shuf
{

constexpr int key_words = SHUF_PHILOX24_ROUNDS; /* enough for any algorithm */

/* philox24. Both halves fit 32 bits, because B is at most 62. A round costs one wide and one plain
 * multiply-add and two logic operations. The unit that multiplies limits the speed, and a wide
 * multiplication counts twice. With Odd, B is odd and the right half is one bit longer. A round
 * then costs one more multiply-add and one shift, which carry this bit over.
 *
 * In `right` the bits above right_bits are undefined. The mask on `left` and the last step remove
 * them. */
template <typename Word_, bool Odd> struct Philox24 {
    using Word = Word_;
    static constexpr shuf_purpose purpose = SHUF_PURPOSE_PHILOX24;
    uint32_t left_mask, right_mask;
    uint32_t right_to_top; /* a factor instead of a shift, because the shifter is the busier unit */
    int left_bits, right_bits;

    explicit Philox24(uint64_t n)
    {
        unsigned bits = shuf_domain_bits(n);
        left_bits = static_cast<int>(bits / 2);
        right_bits = static_cast<int>((bits + 1) / 2);
        left_mask = (uint32_t{1} << left_bits) - 1;
        right_mask = (uint32_t{1} << right_bits) - 1;
        right_to_top = uint32_t{1} << (32 - right_bits);
    }

    __device__ __forceinline__ void round(uint32_t key, uint32_t &left, uint32_t &right) const
    {
        constexpr uint32_t m_lo = static_cast<uint32_t>(SHUF_PHILOX24_MULTIPLIER);
        constexpr uint32_t m_hi = static_cast<uint32_t>(SHUF_PHILOX24_MULTIPLIER >> 32);
        uint64_t product = static_cast<uint64_t>(left) * m_lo;
        uint32_t hi = static_cast<uint32_t>(product >> 32) + left * m_hi;
        uint32_t lo = static_cast<uint32_t>(product);
        left = (hi ^ key ^ right) & left_mask;
        right = Odd ? __funnelshift_l(right * right_to_top, lo, 1) : lo;
    }

    template <int Items>
    __device__ __forceinline__ void evaluate(const uint32_t *key, Word (&x)[Items]) const
    {
        uint32_t left[Items], right[Items];
#pragma unroll
        for (int i = 0; i < Items; i++) {
            left[i] = static_cast<uint32_t>(x[i] >> right_bits);
            right[i] = static_cast<uint32_t>(x[i]) & right_mask;
        }
#pragma unroll tuning::rounds_unrolled
        for (int r = 0; r < SHUF_PHILOX24_ROUNDS; r++) {
            uint32_t k = key[r];
#pragma unroll
            for (int i = 0; i < Items; i++)
                round(k, left[i], right[i]);
        }
#pragma unroll
        for (int i = 0; i < Items; i++)
            x[i] = static_cast<Word>(left[i]) << right_bits | (right[i] & right_mask);
    }
};

template <typename Word_> struct Lcg {
    using Word = Word_;
    static constexpr shuf_purpose purpose = SHUF_PURPOSE_LCG;
    Word mask;

    explicit Lcg(uint64_t n) : mask(static_cast<Word>((uint64_t{1} << shuf_domain_bits(n)) - 1))
    {
    }

    template <int Items>
    __device__ __forceinline__ void evaluate(const uint32_t *key, Word (&x)[Items]) const
    {
        Word a = static_cast<Word>(uint64_t{key[1]} << 32 | key[0] | 1);
        Word c = static_cast<Word>(uint64_t{key[3]} << 32 | key[2]);
#pragma unroll
        for (int i = 0; i < Items; i++)
            x[i] = (a * x[i] + c) & mask;
    }
};

} // namespace shuf

#endif
