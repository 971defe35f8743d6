/* SPDX-License-Identifier: MIT
 *
 * The form for p < 2^31, or p < 2^32 if Bits is 32. It computes m x mod p as m x - q p, where q is
 * an estimate of m x / p in double precision. A GPU has separate units for doubles.
 *
 * The double 2^52 + x has x in its low word and a constant in its high word, so it needs no
 * conversion. With M = floor(2^52 m / p), one fused multiply-add, rounded down, gives
 *
 *     (2^52 + x) M 2^-52 + (2^52 - M) = 2^52 + floor(x M 2^-52)
 *
 * The operands are exact. In the result, the low word is q and the high word is the same constant.
 *
 * For x < p, q is the quotient or one less, because x M 2^-52 is below m x / p by less than p
 * 2^-52. If q is one less, m x - q p is too large by p. This happens only to remainders below p^2
 * 2^-52. There are fewer than 2^12 of them, for p < 2^31 fewer than 2^10, and none for p < 2^26.
 * The result for x >= p does not matter: the range check detects such an x.
 *
 * For n up to 2^21, too many of the numbers are `whole` or more. The form then compares each number
 * before a fold, and needs no range check.
 */
#ifndef SHUF__CUDA_FOLD32_CUH
#define SHUF__CUDA_FOLD32_CUH

#include "fold.cuh"

namespace shuf
{

/* evaluate_unchecked() makes two kinds of errors: it also folds the numbers from `whole` to p - 1,
 * and it does not reduce the few remainders that are too large by p. With a range check, in_range()
 * detects these numbers before a fold. */
template <int Maps, Direction direction = Direction::forward, RangeCheck check = RangeCheck::on,
          int Bits = 31>
struct Fold32 : SumsModP {
    using Word = uint32_t;
    static constexpr bool checks_range = check == RangeCheck::on, is_right_past_n = true;
    static constexpr int shift = large_shift<Maps>;
    static constexpr bool compares = shift == SHUF_PRIMEFOLD_SHIFT_LARGE_21;
    static constexpr int groups =
        checks_range ? tuning::fold_checked_groups : tuning::fold_unchecked_groups;
    static constexpr int blocks_per_sm =
        checks_range ? tuning::fold_checked_blocks_per_sm : tuning::fold_unchecked_blocks_per_sm;
    static constexpr int look_up_blocks_per_sm = tuning::fold_look_up_blocks_per_sm;
    static constexpr int row_blocks_per_sm = tuning::fold_row_blocks_per_sm;
    struct Map {
        double ratio, less; /* M 2^-52, 2^52 - M */
        uint32_t multiplier, fold;
    };
    struct Row {
        Map map[Maps];
        uint32_t addend;
    };
    uint32_t n, p, minus_p, whole;
    uint64_t inverse; /* floor((2^64 - 1) / p) */
    Row row;

    explicit Fold32(const shuf_primefold_shape &shape)
        : n(static_cast<uint32_t>(shape.n)), p(static_cast<uint32_t>(shape.p)), minus_p(0 - p),
          whole(static_cast<uint32_t>(shape.whole)), inverse(~uint64_t{0} / shape.p), row{}
    {
    }

    /* Only remainders below this bound may be too large by p. A sum of such a number and an addend
     * is below 2 p + bound, which fits 32 bits, because p is never just below 2^31. With such a p,
     * the numbers from `whole` to p would be too many, so shuf_primefold_shape_of() takes a p above
     * 2^31 instead. */
    static uint32_t small(const shuf_primefold_shape &shape)
    {
        return static_cast<uint32_t>(shape.p * shape.p >> 52) + 1;
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        const auto ratio = static_cast<uint64_t>((static_cast<shuf__u128>(m.multiplier) << 52) / p);
        row.map[r] = map_of(m, ratio);
    }

    __host__ __device__ static Map map_of(const shuf_primefold_map &m, uint64_t ratio)
    {
        const auto exact = static_cast<double>(ratio);
        return {exact * 0x1p-52, 0x1p52 - exact, static_cast<uint32_t>(m.multiplier),
                static_cast<uint32_t>(m.fold)};
    }

    static void set_addend(Row &row, uint64_t addend, uint64_t)
    {
        row.addend = static_cast<uint32_t>(addend);
    }

    __device__ void set_there(Row &row, uint32_t r, const shuf_primefold_map &m) const
    {
        const uint64_t high = divided(m.multiplier << 32, p, inverse);
        const uint64_t low = divided(((m.multiplier << 32) - high * p) << 20, p, inverse);
        row.map[r] = map_of(m, high << 20 | low);
    }

    __device__ void set_addend_there(Row &row, uint64_t addend) const
    {
        row.addend = static_cast<uint32_t>(addend);
    }

    /* x mod p, for x < 2 p */
    __device__ __forceinline__ uint32_t reduced(uint32_t x) const
    {
        return least_sum(x, minus_p, x);
    }

    /* The map, without the last reduction: the result may be too large by p. `high` is the high
     * word of 2^52 on entry and on return. */
    __device__ __forceinline__ uint32_t unreduced(const Map &m, uint32_t x, int &high) const
    {
        const double q = __fma_rd(__hiloint2double(high, static_cast<int>(x)), m.ratio, m.less);
        high = __double2hiint(q);
        return x * m.multiplier + static_cast<uint32_t>(__double2loint(q)) * minus_p;
    }

    static constexpr int high_of_2_52 = 0x43300000;

    /* Map r, reduced. Adds the addend if it belongs to this map. */
    __device__ __forceinline__ uint32_t mapped(const Row &keys, int r, uint32_t x) const
    {
        int high = high_of_2_52;
        x = reduced(unreduced(keys.map[r], x, high));
        return r == (direction == Direction::forward ? 0 : Maps - 1) ? add(x, keys.addend) : x;
    }

    __device__ __forceinline__ uint32_t start(const Row &keys, uint64_t position) const
    {
        return mapped(keys, 0, static_cast<uint32_t>(position));
    }

    __device__ __forceinline__ uint32_t step_there(const Row &keys, uint64_t distance) const
    {
        const uint32_t far = start(keys, distance), near = start(keys, 0);
        return far >= near ? far - near : far - near + p;
    }

    __device__ __forceinline__ uint32_t first(uint32_t x) const
    {
        return x;
    }

    __device__ __forceinline__ uint32_t add(uint32_t x, uint32_t step) const
    {
        if constexpr (Bits < 32) {
            return reduced(x + step);
        } else {
            const uint32_t until_p = p - step; /* the sum may not fit 32 bits */
            return x < until_p ? x + step : x - until_p;
        }
    }

    __device__ __forceinline__ uint32_t folded(uint32_t x, uint32_t fold) const
    {
        return x < whole ? fold_of<direction, shift>(x, fold) : x;
    }

    __device__ __forceinline__ uint32_t rest(const Row &keys, uint32_t x) const
    {
#pragma unroll 1
        for (int r = 1; r < Maps; r++)
            x = mapped(keys, r, folded(x, keys.map[r - 1].fold));
        return x;
    }

    template <int Groups>
    __device__ __forceinline__ void
    evaluate_unchecked(const Row &keys, uint32_t (&x)[Groups][group], uint32_t &met) const
    {
        int high[Groups][group];
#pragma unroll
        for (int i = 0; i < Groups * group; i++)
            high[i / group][i % group] = high_of_2_52;
#pragma unroll
        for (int r = 1; r < Maps; r++) {
            const uint32_t fold = keys.map[r - 1].fold;
            const Map map = keys.map[r];
#pragma unroll
            for (int g = 0; g < Groups; g++) {
                if constexpr (checks_range && !compares)
                    met = most(x[g], met);
#pragma unroll
                for (int c = 0; c < group; c++)
                    x[g][c] = unreduced(map,
                                        compares ? folded(x[g][c], fold)
                                                 : fold_of<direction, shift>(x[g][c], fold),
                                        high[g][c]);
            }
        }
        if constexpr (direction == Direction::inverse)
#pragma unroll
            for (int g = 0; g < Groups; g++)
#pragma unroll
                for (int c = 0; c < group; c++)
                    x[g][c] = Bits < 32 ? reduced(x[g][c] + keys.addend)
                                        : add(reduced(x[g][c]), keys.addend);
    }

    __device__ __forceinline__ uint32_t most(const uint32_t (&x)[group], uint32_t met = 0) const
    {
        return largest(largest(met, x[0], x[1]), x[2], x[3]);
    }

    /* Reduces a value that evaluate_unchecked() left too large by p. Such a value comes from the
     * last map, because in_range() detects those of the other maps. */
    __device__ __forceinline__ uint32_t settled(uint32_t x) const
    {
        return reduced(x);
    }

    __device__ __forceinline__ bool in_range(uint32_t met) const
    {
        return !checks_range || compares || met < whole;
    }

    __device__ __forceinline__ bool is_below(uint32_t most) const
    {
        return most < n;
    }
};

/* For p < 2^32. */
template <int Maps, Direction direction = Direction::forward>
using Fold32Whole = Fold32<Maps, direction, RangeCheck::on, 32>;

} // namespace shuf

#endif
