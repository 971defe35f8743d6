/* SPDX-License-Identifier: MIT
 *
 * The form for any p, in 64-bit words, by Shoup's multiplication (simd/primefold.h).
 * fold_double.cuh has a faster form for p < 2^38, with the same words.
 */
#ifndef SHUF__CUDA_FOLD64_CUH
#define SHUF__CUDA_FOLD64_CUH

#include "fold.cuh"

namespace shuf
{

/* floor(a * 2^64 / p) for a < p < 2^63, bit by bit. The device calls it only once for each map of a
 * row with 64-bit words, so its speed does not matter. */
__host__ __device__ inline uint64_t quotient_64(uint64_t a, uint64_t p)
{
    uint64_t quotient = 0;
    for (int i = 0; i < 64; i++) {
        a = 2 * a;
        const bool fits = a >= p;
        a -= fits ? p : 0;
        quotient = quotient << 1 | (fits ? 1 : 0);
    }
    return quotient;
}

struct Fold64Base : SumsModP {
    using Word = uint64_t;
    static constexpr int groups = tuning::fold_wide_groups;
    static constexpr int blocks_per_sm = tuning::fold_wide_blocks_per_sm;
    static constexpr int look_up_blocks_per_sm = tuning::fold_wide_blocks_per_sm;
    static constexpr int row_blocks_per_sm = tuning::fold_wide_row_blocks_per_sm;
    static constexpr int shift = SHUF_PRIMEFOLD_SHIFT_LARGE_62;
    uint64_t n, p, whole;

    explicit Fold64Base(const shuf_primefold_shape &shape)
        : n(shape.n), p(shape.p), whole(shape.whole)
    {
    }

    __device__ __forceinline__ uint64_t reduced(uint64_t x) const
    {
        const uint64_t less = x - p;
        return static_cast<int64_t>(less) < 0 ? x : less;
    }

    __device__ __forceinline__ uint64_t first(uint64_t x) const
    {
        return x;
    }

    __device__ __forceinline__ uint64_t settled(uint64_t x) const
    {
        return x;
    }

    __device__ __forceinline__ uint64_t add(uint64_t x, uint64_t step) const
    {
        uint64_t sum = x + step - p;
        if (static_cast<int64_t>(sum) < 0)
            sum += p;
        return sum;
    }

    template <Direction direction = Direction::forward>
    __device__ __forceinline__ uint64_t folded(uint64_t fold, uint64_t x) const
    {
        return x < whole ? fold_of<direction, shift>(x, fold) : x;
    }
};

/* The form for any p below 2^63, by Shoup's multiplication. For x < 2 p, x fits 64 bits, and the
 * sign of x - p says whether x is reduced. */
template <int Maps, Direction direction = Direction::forward> struct Fold64 : Fold64Base {
    static constexpr bool checks_range = true, is_right_past_n = true;
    struct Map {
        uint64_t multiplier, quotient, fold;
    };
    struct Row {
        Map map[Maps];
        uint64_t addend;
    };
    int shifted_by; /* the range check compares 32 bits of a number, from this bit upwards */
    uint32_t n_shifted;
    Row row;

    explicit Fold64(const shuf_primefold_shape &shape)
        : Fold64Base(shape), shifted_by(shape.bits > 32 ? static_cast<int>(shape.bits) - 32 : 0),
          n_shifted(static_cast<uint32_t>(shape.n >> shifted_by)), row{}
    {
    }

    __host__ __device__ static void set(Row &row, uint32_t r, const shuf_primefold_map &m,
                                        uint64_t p)
    {
        row.map[r] = {m.multiplier, quotient_64(m.multiplier, p), m.fold};
    }

    __host__ __device__ static void set_addend(Row &row, uint64_t addend, uint64_t)
    {
        row.addend = addend;
    }

    __device__ void set_addend_there(Row &row, uint64_t addend) const
    {
        row.addend = addend;
    }

    __device__ void set_there(Row &row, uint32_t r, const shuf_primefold_map &m) const
    {
        set(row, r, m, p);
    }

    __device__ __forceinline__ uint64_t mapped(const Row &keys, int r, uint64_t x) const
    {
        const Map &m = keys.map[r];
        x = reduced(x * m.multiplier - __umul64hi(x, m.quotient) * p);
        return r == (direction == Direction::forward ? 0 : Maps - 1) ? add(x, keys.addend) : x;
    }

    __device__ __forceinline__ uint64_t start(const Row &keys, uint64_t position) const
    {
        return mapped(keys, 0, position);
    }

    __device__ __forceinline__ uint64_t step_there(const Row &keys, uint64_t distance) const
    {
        const uint64_t far = start(keys, distance), near = start(keys, 0);
        return far >= near ? far - near : far - near + p;
    }

    /* Does the fold after map r - 1, and then map r; r >= 1. */
    __device__ __forceinline__ uint64_t step(const Row &keys, int r, uint64_t x) const
    {
        return mapped(keys, r, folded<direction>(keys.map[r - 1].fold, x));
    }

    __device__ __forceinline__ uint64_t rest(const Row &keys, uint64_t x) const
    {
#pragma unroll 1
        for (int r = 1; r < Maps; r++)
            x = step(keys, r, x);
        return x;
    }

    template <int Groups>
    __device__ __forceinline__ void
    evaluate_unchecked(const Row &keys, uint64_t (&x)[Groups][group], uint32_t &) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++)
#pragma unroll
            for (int i = 0; i < Groups * group; i++)
                x[i / group][i % group] = step(keys, r, x[i / group][i % group]);
    }

    __device__ __forceinline__ uint32_t most(const uint64_t (&x)[group]) const
    {
        const auto part = [this](uint64_t y) { return static_cast<uint32_t>(y >> shifted_by); };
        return largest(max(part(x[0]), part(x[1])), part(x[2]), part(x[3]));
    }

    __device__ __forceinline__ bool in_range(uint32_t) const
    {
        return true;
    }

    __device__ __forceinline__ bool is_below(uint32_t most) const
    {
        return most < n_shifted;
    }
};

} // namespace shuf

#endif
