/* SPDX-License-Identifier: MIT
 *
 * The forms for p >= 2^31, in 64-bit words: FoldDouble estimates quotients in double precision, for
 * p < 2^38. Fold64 uses Shoup's multiplication (simd/primefold.h), for any p.
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

    static __device__ __forceinline__ uint32_t most_shifted(const uint64_t (&x)[group], int by)
    {
        const auto part = [by](uint64_t y) { return static_cast<uint32_t>(y >> by); };
        return max(max(part(x[0]), part(x[1])), max(part(x[2]), part(x[3])));
    }

    template <Direction direction = Direction::forward>
    __device__ __forceinline__ uint64_t folded(uint64_t fold, uint64_t x) const
    {
        return x < whole ? fold_of<direction, shift>(x, fold) : x;
    }
};

/* a * b + c * d + e mod 2^64, by multiply-add instructions on 32-bit words. Assembly keeps the
 * order of these instructions, which the compiler would change. */
__device__ __forceinline__ uint64_t two_products(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                                 uint64_t e)
{
    uint64_t result;
    asm("{\n\t"
        ".reg .u32 a0, a1, b0, b1, c0, c1, d0, d1, low, high;\n\t"
        ".reg .u64 sum;\n\t"
        "mov.b64 {a0, a1}, %1;\n\t"
        "mov.b64 {b0, b1}, %2;\n\t"
        "mov.b64 {c0, c1}, %3;\n\t"
        "mov.b64 {d0, d1}, %4;\n\t"
        "mad.wide.u32 sum, a0, b0, %5;\n\t"
        "mad.wide.u32 sum, c0, d0, sum;\n\t"
        "mov.b64 {low, high}, sum;\n\t"
        "mad.lo.u32 high, a0, b1, high;\n\t"
        "mad.lo.u32 high, a1, b0, high;\n\t"
        "mad.lo.u32 high, c0, d1, high;\n\t"
        "mad.lo.u32 high, c1, d0, high;\n\t"
        "mov.b64 %0, {low, high};\n\t"
        "}"
        : "=l"(result)
        : "l"(a), "l"(b), "l"(c), "l"(d), "l"(e));
    return result;
}

/* The form for p < 2^38. It estimates the quotient in double precision, because a GPU has separate
 * units for doubles.
 *
 * In each map the estimate is wrong by one for a few values: one in 2^17 at the largest p, one in
 * 2^22 at p = 2^33. The remainder is then negative or at least p. The range check before the next
 * fold detects it.
 *
 * The code converts nothing. It works on the bits of two doubles:
 *
 * - A number x has the bits of 2^52 + x. So its upper word contains an exponent.
 * - A quotient v has the bits of 3 * 2^51 + v. This addition also rounds v to an integer.
 *
 * A map multiplies these bits as they are, and `less` corrects the result for both exponents. A
 * fold changes only the lower word, because x >> 8 has at most 30 bits. The part that it uses,
 * `shifted`, has no bits of the exponent. */
template <int Maps> struct FoldDouble : Fold64Base {
    static constexpr bool checks_range = true, is_right_past_n = false;
    static constexpr int most_bits = 38; /* of p */
    static constexpr uint64_t exponent = uint64_t{0x433} << 52, rounded = uint64_t{0x4338} << 48;
    struct Map {
        uint64_t multiplier, less;
        double ratio; /* m / p */
        uint64_t fold;
    };
    struct Row {
        Map map[Maps];
        uint64_t addend;
    };
    uint64_t minus_p;
    uint32_t whole_shifted, n_shifted; /* `whole` and n without their low bits */
    Row row;

    explicit FoldDouble(const shuf_primefold_shape &shape)
        : Fold64Base(shape), minus_p(0 - shape.p),
          whole_shifted(static_cast<uint32_t>(shape.whole >> shape.shift)),
          n_shifted(static_cast<uint32_t>(shape.n >> shape.shift)), row{}
    {
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        const auto by = static_cast<double>(p);
        const uint64_t next = r + 1 < Maps ? exponent : 0;
        row.map[r] = {m.multiplier, rounded * p - exponent * m.multiplier + next,
                      static_cast<double>(m.multiplier) / by, m.fold};
    }

    static void set_addend(Row &row, uint64_t addend, uint64_t)
    {
        row.addend = addend;
    }

    /* The map, without a correction: the result may be too small or too large by p. x has the
     * exponent of 2^52. The result has it too, except after the last map. */
    __device__ __forceinline__ uint64_t estimated(const Map &m, uint64_t x) const
    {
        const double at = __longlong_as_double(static_cast<long long>(x)) - 0x1p52;
        const double q = fma(at, m.ratio, -0.5) + 0x1.8p52;
        return two_products(x, m.multiplier, static_cast<uint64_t>(__double_as_longlong(q)),
                            minus_p, m.less);
    }

    __device__ __forceinline__ uint64_t mapped(const Map &m, uint64_t x, uint64_t next) const
    {
        const uint64_t y = estimated(m, x | exponent) - next;
        return reduced(static_cast<int64_t>(y) < 0 ? y + p : y);
    }

    __device__ __forceinline__ uint64_t start(const Row &keys, uint64_t position) const
    {
        return add(mapped(keys.map[0], position, exponent), keys.addend);
    }

    __device__ __forceinline__ uint64_t rest(const Row &keys, uint64_t x) const
    {
#pragma unroll 1
        for (int r = 1; r < Maps; r++)
            x = mapped(keys.map[r], folded(keys.map[r - 1].fold, x), r + 1 < Maps ? exponent : 0);
        return x;
    }

    template <int Groups>
    __device__ __forceinline__ void
    evaluate_unchecked(const Row &keys, uint64_t (&y)[Groups][group], uint32_t &met) const
    {
#pragma unroll
        for (int i = 0; i < Groups * group; i++)
            y[i / group][i % group] |= exponent;
#pragma unroll
        for (int r = 1; r < Maps; r++)
#pragma unroll
            for (int i = 0; i < Groups * group; i++) {
                uint64_t &x = y[i / group][i % group];
                const auto shifted = static_cast<uint32_t>(x >> shift);
                met = max(met, shifted);
                const uint32_t low = exclusive_or(static_cast<uint32_t>(x), shifted,
                                                  static_cast<uint32_t>(keys.map[r - 1].fold));
                x = estimated(keys.map[r], x >> 32 << 32 | low);
            }
    }

    __device__ __forceinline__ uint32_t most(const uint64_t (&x)[group]) const
    {
        return most_shifted(x, shift);
    }

    /* Checks the numbers before all folds. A wrong result of the last map is not below n, so
     * is_below() detects it. */
    __device__ __forceinline__ bool in_range(uint32_t met) const
    {
        return met < whole_shifted;
    }

    __device__ __forceinline__ bool is_below(uint32_t most) const
    {
        return most < n_shifted;
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
        return most_shifted(x, shifted_by);
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
