/* SPDX-License-Identifier: MIT
 *
 * `primefold` as the GPU runs it, in words that suit p: forms. What they share.
 *
 * A form knows p and has, of a row's keys, start() for a position, add() to go on from one start to
 * another by a step, first() for the value after the first map, and rest() for all maps after it.
 * quick_rest() is the same and watches: finished() tells whether all values are below n and
 * right(). What is not finished is made again, from its position on; where all are right() and the
 * form is_right_past_n, it may also be walked on from where it is.
 */
#ifndef SHUF__CUDA_FOLD_CUH
#define SHUF__CUDA_FOLD_CUH

#include "shuf/primefold.h"
#include "tuning.cuh"

#include <cuda_runtime.h>

namespace shuf
{

/* The largest numbers that quick_rest() met: before folds, and at the end. A form that folds all of
 * them is wrong about those beyond the whole blocks, of which there are hardly any: it tells. */
struct Watch {
    uint32_t most_folded, most;
};

/* floor(a / p), a < 2^63, without a division: `inverse` is floor((2^64 - 1) / p). */
__device__ __forceinline__ uint64_t divided(uint64_t a, uint64_t p, uint64_t inverse)
{
    const uint64_t q = __umul64hi(a, inverse);
    return q + (a - q * p >= p);
}

/* a ^ b ^ c in one instruction, which the compiler tears apart. */
__device__ __forceinline__ uint32_t exclusive_or(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

/* Whether a form computes the values of positions or, of maps that have been turned (turn.h), the
 * positions of values. */
enum class Way { forward, backward };

/* x folded or, backward, unfolded: then each part of it below the uppermost is known from the one
 * above, and `fold`, which was unfolded before, comes last. */
template <Way way> __device__ __forceinline__ uint32_t fold_of(uint32_t x, uint32_t fold)
{
    int by = SHUF_PRIMEFOLD_LARGE_SHIFT;
    if constexpr (way == Way::backward)
#pragma unroll
        for (; 2 * by < 32; by *= 2)
            x ^= x >> by;
    return exclusive_or(x, x >> by, fold);
}

template <Way way> __device__ __forceinline__ uint64_t fold_of(uint64_t x, uint64_t fold)
{
    int by = SHUF_PRIMEFOLD_LARGE_SHIFT;
    if constexpr (way == Way::backward)
#pragma unroll
        for (; 2 * by < 64; by *= 2)
            x ^= x >> by;
    return x ^ x >> by ^ fold;
}

/* What the first map adds over a distance, for forms whose start is a value below p. */
struct SumsModP {
    static uint64_t distance(uint64_t stride, uint64_t times, uint64_t p)
    {
        return shuf__multiply_mod(stride % p, times, p);
    }

    template <typename Row> static auto step_of(const Row &keys, uint64_t distance, uint64_t p)
    {
        const uint64_t step = shuf__multiply_mod(keys.map[0].multiplier, distance, p);
        return static_cast<decltype(keys.map[0].multiplier + 0)>(step);
    }
};

} // namespace shuf

#endif
