/* SPDX-License-Identifier: MIT
 *
 * `primefold` on the GPU: the code that all forms share. primefold_form.h has the contract of a
 * form. A form has these functions:
 *
 * - start() gives the *start* of a position: the result of the first map, in a representation of
 *   the form's own.
 * - add() adds a step to a start, and gives the start of another position.
 * - first() converts a start to the number that it stands for.
 * - rest() applies all other maps to this number, exactly.
 * - evaluate_unchecked() does the same as rest() for groups of values, without checks.
 */
#ifndef SHUF__CUDA_FOLD_CUH
#define SHUF__CUDA_FOLD_CUH

#include "primefold_form.h"
#include "shuf/primefold.h"
#include "tuning.cuh"

#include <cuda_runtime.h>

namespace shuf
{

constexpr int group = 4; /* neighbouring values that a thread stores together */

/* floor(a / p) for a < 2^63, without a division. `inverse` is floor((2^64 - 1) / p). */
__device__ __forceinline__ uint64_t divided(uint64_t a, uint64_t p, uint64_t inverse)
{
    const uint64_t q = __umul64hi(a, inverse);
    return q + (a - q * p >= p);
}

/* The largest of three numbers, and min(a + b, c): one instruction each on an H100. CUDA 11 has no
 * functions for them. */
__device__ __forceinline__ uint32_t largest(uint32_t a, uint32_t b, uint32_t c)
{
#if CUDART_VERSION >= 12000
    return __vimax3_u32(a, b, c);
#else
    return max(max(a, b), c);
#endif
}

__device__ __forceinline__ uint32_t least_sum(uint32_t a, uint32_t b, uint32_t c)
{
#if CUDART_VERSION >= 12000
    return __viaddmin_u32(a, b, c);
#else
    return min(a + b, c);
#endif
}

/* a ^ b ^ c in one instruction. The compiler would use two. */
__device__ __forceinline__ uint32_t exclusive_or(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

/* Forward: a form computes values of positions. Inverse: with inverted maps (simd/primefold.h), a
 * form computes positions of values. */
enum class Direction { forward, inverse };

/* On: a form detects numbers out of range. Off: it does not, and a second kernel corrects the wrong
 * values. */
enum class RangeCheck { off, on };

/* The shift of a fold for a large n. It follows from the number of maps. */
template <int Maps>
constexpr int large_shift = Maps == SHUF_PRIMEFOLD_MAPS_LARGE_21 ? SHUF_PRIMEFOLD_SHIFT_LARGE_21
                                                                 : SHUF_PRIMEFOLD_SHIFT_LARGE_62;
static_assert(int{SHUF_PRIMEFOLD_MAPS_LARGE_21} != int{SHUF_PRIMEFOLD_MAPS_LARGE_62});

/* Direction::forward folds x. Direction::inverse undoes a fold; its `fold` must already be
 * inverted. They return
 *
 *     forward    x ^ x >> shift ^ fold
 *     inverse    x ^ x >> shift ^ x >> 2 shift ^ ... ^ fold */
template <Direction direction, int shift>
__device__ __forceinline__ uint32_t fold_of(uint32_t x, uint32_t fold)
{
    int by = shift;
    if constexpr (direction == Direction::inverse)
#pragma unroll
        for (; 2 * by < 32; by *= 2)
            x ^= x >> by;
    return exclusive_or(x, x >> by, fold);
}

template <Direction direction, int shift>
__device__ __forceinline__ uint64_t fold_of(uint64_t x, uint64_t fold)
{
    int by = shift;
    if constexpr (direction == Direction::inverse)
#pragma unroll
        for (; 2 * by < 64; by *= 2)
            x ^= x >> by;
    return x ^ x >> by ^ fold;
}

/* For forms whose start is a number below p: the step between the starts of two positions. It
 * depends only on the distance of the positions, because the first map is linear. */
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
