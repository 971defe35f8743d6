/* SPDX-License-Identifier: MIT
 *
 * `primefold` as the GPU runs it, in words that suit p: forms. What they share.
 *
 * A form knows p and has, of a row's keys, start() for a position, add() to go on from one start to
 * another by a step, first() for the value after the first map, and rest() for all maps after it.
 * quick_rest() is the same and watches: finished() tells whether all values are below n, and those
 * of a hasty form may be wrong. What is not finished is made again, from its position on.
 */
#ifndef SHUF__CUDA_FOLD_CUH
#define SHUF__CUDA_FOLD_CUH

#include "shuf/primefold.h"
#include "tuning.cuh"

#include <cuda_runtime.h>

namespace shuf
{

/* The largest numbers that quick_rest() met: before folds, and at the end. */
struct Watch {
    uint32_t most_folded, most;
};

/* floor(a / p), a < 2^63, without a division: `inverse` is floor((2^64 - 1) / p). */
__device__ __forceinline__ uint64_t divided(uint64_t a, uint64_t p, uint64_t inverse)
{
    const uint64_t q = __umul64hi(a, inverse);
    return q + (a - q * p >= p);
}

/* x >> shift whether it is needed or not: under a condition, `shift` would be loaded every time. */
__device__ __forceinline__ uint32_t shifted(uint32_t x, int shift)
{
    uint32_t result;
    asm volatile("shr.u32 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(shift));
    return result;
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

/* x folded, or unfolded: then each part of it below the uppermost is known from the one above, and
 * `fold`, which was unfolded before, comes last. Few: four parts of `shift` bits are all of x, else
 * eight. Where it does not fold, x. */
template <Way way, bool Few>
__device__ __forceinline__ uint32_t fold_of(uint32_t x, int shift, uint32_t fold, bool folds)
{
    uint32_t y = x;
    int by = shift;
    if constexpr (way == Way::backward) {
        y ^= shifted(y, by);
        by *= 2;
        if constexpr (!Few) {
            y ^= shifted(y, by);
            by *= 2;
        }
    }
    const uint32_t part = shifted(y, by);
    return folds ? exclusive_or(y, part, fold) : x;
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
