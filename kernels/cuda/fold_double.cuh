/* SPDX-License-Identifier: MIT
 *
 * The form for 2^31 < p < 2^38, in double precision, because a GPU has separate units for doubles.
 *
 * A number x is a word with the bits of the double 2^52 + x, so it needs no conversion. With M, the
 * integer nearest to 2^52 m / p, three fused multiply-adds give the quotient q and an estimate of
 * the remainder y = m x - q p:
 *
 *     product  = (2^52 + x)(1 + M 2^-52)     = 2^52 + M + x + x M 2^-52, never rounded
 *     sum      = floor(product - offset)     = 2^52 + M - offset + x + q
 *     fraction = product - sum               = offset + the fraction of x M 2^-52
 *     near     = (fraction - offset) p + 2^52 + bias
 *
 * `offset` has the low word of M, so the low word of `sum` is x + q mod 2^32. The low word of y is
 * then (m + p) x - p (x + q) mod 2^32, which is exact. The low word of `near` differs from it by
 * less than 2^28, so the signed difference of 32 bits corrects `near`:
 *
 *     rounding of `fraction`, which is below 2^41 + 1, times p    2^25
 *     rounding of offset p, which is a part of `near`             2^25
 *     rounding of M, times x p 2^-52                              2^23
 *     bias                                                        2^27
 *
 * The bias keeps `near` above 2^52. If M is 2^51 or more, `offset` is larger by 2^40, so that `sum`
 * stays below 2^53. The last map computes the same multiplied by 2^-1074. A double with the integer
 * y as its bits is y 2^-1074, so the result is y itself.
 *
 * In each map, q is wrong by one for a few values: one in 2^17 at the largest p, one in 2^22 at p =
 * 2^33. The remainder is then negative or at least p. The range check before the next fold detects
 * it. A fold changes only the lower word, because x >> 8 has at most 30 bits. The part that it
 * uses, `shifted`, has no bits of the exponent.
 */
#ifndef SHUF__CUDA_FOLD_DOUBLE_CUH
#define SHUF__CUDA_FOLD_DOUBLE_CUH

#include "fold64.cuh"

#include <cmath>
#include <cstring>

namespace shuf
{

/* a + b, for a signed b. It is one instruction, because the compiler combines such a pair. The
 * compiler makes two instructions from a + b. `one` is 1, but the compiler must not know that. */
__device__ __forceinline__ uint64_t wide_sum(uint64_t a, int32_t b, int32_t one)
{
    uint64_t sum;
    asm("{\n\t"
        ".reg .u32 low, high;\n\t"
        "mov.b64 {low, high}, %1;\n\t"
        "mad.lo.cc.s32 low, %2, %3, low;\n\t"
        "madc.hi.s32 high, %2, %3, high;\n\t"
        "mov.b64 %0, {low, high};\n\t"
        "}"
        : "=l"(sum)
        : "l"(a), "r"(b), "r"(one));
    return sum;
}

template <int Maps> struct FoldDouble : Fold64Base {
    static constexpr bool checks_range = true, is_right_past_n = false;
    static constexpr int most_bits = 38; /* of p */
    static constexpr uint64_t exponent = uint64_t{0x433} << 52;
    static constexpr double bias = 0x1p27;
    struct Map {
        double ratio, minus_offset; /* 1 + M 2^-52, -offset */
        double prime, base;         /* p, 2^52 + bias - offset p */
        uint64_t multiplier, fold;  /* the multiplier is m + p */
    };
    struct Row {
        Map map[Maps];
        uint64_t addend; /* as add() needs it */
    };
    int32_t one;
    uint32_t minus_p;
    uint32_t whole_shifted, n_shifted; /* `whole` and n without their low bits */
    double prime;
    Row row;

    explicit FoldDouble(const shuf_primefold_shape &shape)
        : Fold64Base(shape), one(1), minus_p(0 - static_cast<uint32_t>(shape.p)),
          whole_shifted(static_cast<uint32_t>(shape.whole >> shape.shift)),
          n_shifted(static_cast<uint32_t>(shape.n >> shape.shift)),
          prime(static_cast<double>(shape.p)), row{}
    {
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        const auto scaled = (static_cast<shuf__u128>(m.multiplier) << 52) + p / 2;
        const auto nearest = static_cast<uint64_t>(scaled / p); /* M */
        const uint64_t low = nearest & 0xffffffff, high = nearest >> 51 << 40;
        const auto offset = static_cast<double>(low + high), prime = static_cast<double>(p);
        const bool is_last = r + 1 == Maps;
        const double unit = is_last ? 0x1p-1074 : 1, above = is_last ? bias : 0x1p52 + bias;
        Map &map = row.map[r];
        map.ratio = 1 + static_cast<double>(nearest) * 0x1p-52;
        map.minus_offset = -offset;
        map.prime = prime * unit;
        map.base = std::fma(-offset, prime, above) * unit;
        map.multiplier = m.multiplier + p;
        map.fold = m.fold;
    }

    /* A step for add(): the bits of the double x - p. */
    static uint64_t less_p(uint64_t x, uint64_t p)
    {
        const double less = static_cast<double>(x) - static_cast<double>(p);
        uint64_t bits;
        memcpy(&bits, &less, sizeof bits);
        return bits;
    }

    static void set_addend(Row &row, uint64_t addend, uint64_t p)
    {
        row.addend = less_p(addend, p);
    }

    static uint64_t step_of(const Row &keys, uint64_t distance, uint64_t p)
    {
        return less_p(SumsModP::step_of(keys, distance, p), p);
    }

    static __device__ __forceinline__ uint64_t bits(double x)
    {
        return static_cast<uint64_t>(__double_as_longlong(x));
    }

    static __device__ __forceinline__ double real(uint64_t bits)
    {
        return __longlong_as_double(static_cast<long long>(bits));
    }

    __device__ __forceinline__ uint64_t add(uint64_t x, uint64_t step) const
    {
        const double sum = real(x) + real(step);
        return bits(static_cast<uint32_t>(__double2hiint(sum)) < exponent >> 32 ? sum + prime
                                                                                : sum);
    }

    /* The map, without a correction: the result may be too small or too large by p. It has the
     * exponent of 2^52, except after the last map. */
    __device__ __forceinline__ uint64_t estimated(const Map &m, uint64_t x) const
    {
        const double sum = __fma_rd(real(x), m.ratio, m.minus_offset);
        const double fraction = fma(real(x), m.ratio, -sum);
        const uint64_t near = bits(fma(fraction, m.prime, m.base));
        const uint32_t difference =
            static_cast<uint32_t>(bits(sum)) * minus_p +
            (static_cast<uint32_t>(x) * static_cast<uint32_t>(m.multiplier) -
             static_cast<uint32_t>(near));
        return wide_sum(near, static_cast<int32_t>(difference), one);
    }

    __device__ __forceinline__ uint64_t mapped(const Map &m, uint64_t x, uint64_t next) const
    {
        const uint64_t y = estimated(m, x | exponent) - next;
        return reduced(static_cast<int64_t>(y) < 0 ? y + p : y);
    }

    __device__ __forceinline__ uint64_t start(const Row &keys, uint64_t position) const
    {
        return add(mapped(keys.map[0], position, exponent) | exponent, keys.addend);
    }

    __device__ __forceinline__ uint64_t rest(const Row &keys, uint64_t x) const
    {
        x ^= exponent;
#pragma unroll 1
        for (int r = 1; r < Maps; r++)
            x = mapped(keys.map[r], folded(keys.map[r - 1].fold, x), r + 1 < Maps ? exponent : 0);
        return x;
    }

    template <int Groups>
    __device__ __forceinline__ void
    evaluate_unchecked(const Row &keys, uint64_t (&x)[Groups][group], uint32_t &met) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++)
#pragma unroll
            for (int g = 0; g < Groups; g++) {
                met = most(x[g], met);
#pragma unroll
                for (int c = 0; c < group; c++) {
                    const uint64_t y = x[g][c];
                    const uint32_t low = exclusive_or(static_cast<uint32_t>(y), shifted(y),
                                                      static_cast<uint32_t>(keys.map[r - 1].fold));
                    x[g][c] = estimated(keys.map[r], y >> 32 << 32 | low);
                }
            }
    }

    static __device__ __forceinline__ uint32_t shifted(uint64_t x)
    {
        return static_cast<uint32_t>(x >> shift);
    }

    __device__ __forceinline__ uint32_t most(const uint64_t (&x)[group], uint32_t met = 0) const
    {
        return largest(largest(met, shifted(x[0]), shifted(x[1])), shifted(x[2]), shifted(x[3]));
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

} // namespace shuf

#endif
