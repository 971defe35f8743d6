/* SPDX-License-Identifier: MIT
 *
 * The form for p < 2^16. A map multiplies fractions of p in 32 bits, so the reduction modulo p
 * costs nothing.
 */
#ifndef SHUF__CUDA_FOLD16_CUH
#define SHUF__CUDA_FOLD16_CUH

#include "fold.cuh"

namespace shuf
{

/* The number of bits below the highest set bit of y. */
__device__ __forceinline__ uint32_t bits_below_top(uint32_t y)
{
    uint32_t bits;
    asm("bfind.u32 %0, %1;" : "=r"(bits) : "r"(y));
    return bits;
}

/* The lowest `bits` bits of x, in one instruction. */
__device__ __forceinline__ uint32_t lowest(uint32_t x, uint32_t bits)
{
    uint32_t result;
    asm("szext.clamp.u32 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(bits));
    return result;
}

/* The result y of a map is first a fraction: y / p, in units of 2^-32. Then y = fraction * p >> 32.
 *
 * - A row has its multipliers and its addend as such fractions. A number x times the fraction m / p
 *   is m x / p. Overflow of the 32 bits drops whole multiples of 1, which are whole multiples of p
 *   in m x. This is the reduction modulo p, without an instruction.
 * - The stored fractions are rounded up, so the fraction of a result is too large, by at most p
 *   units. This is less than 2^32 / p units, the distance of two neighbouring numbers. So y is
 *   exact.
 *
 * With Fixed there are exactly Maps maps, otherwise at most Maps. */
template <int Maps, bool Fixed, Direction direction = Direction::forward> struct Fold16 {
    using Word = uint32_t;
    static constexpr bool checks_range = true, is_right_past_n = true;
    static constexpr int groups = tuning::fold_groups;
    static constexpr int blocks_per_sm = tuning::fold_blocks_per_sm;
    static constexpr int look_up_blocks_per_sm = tuning::fold_blocks_per_sm;
    static constexpr int row_blocks_per_sm = tuning::fold_small_row_blocks_per_sm;
    struct alignas(8) Map {
        uint32_t multiplier, fold;
    };
    /* A row is an odd number of 8-byte words. So 16 neighbouring rows begin in different banks of
     * shared memory. */
    struct alignas(8) Row {
        uint32_t addend, unused;
        Map map[Maps % 2 == 0 ? Maps : Maps + 1];
    };
    static constexpr uint64_t exponent = uint64_t{0x433} << 52; /* of 2^52 + an integer */
    uint32_t n, p;
    int maps;
    double units; /* 2^32 / p */
    Row row;

    explicit Fold16(const shuf_primefold_shape &shape)
        : n(static_cast<uint32_t>(shape.n)), p(static_cast<uint32_t>(shape.p)),
          maps(static_cast<int>(shape.maps)), units(0x1p32 / static_cast<double>(shape.p)), row{}
    {
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        row.map[r] = {static_cast<uint32_t>((m.multiplier << 32) / p + 1),
                      static_cast<uint32_t>(m.fold)};
    }

    static void set_addend(Row &row, uint64_t addend, uint64_t p)
    {
        row.addend = static_cast<uint32_t>((addend << 32) / p + 1);
    }

    /* floor(2^32 a / p) + 1. If 2^32 a / p is not an integer, it differs from the nearest integer
     * by at least 1 / p. The rounding error is smaller, so the floor is right. */
    __device__ __forceinline__ uint32_t fraction(uint64_t a) const
    {
        const double at = __longlong_as_double(static_cast<long long>(exponent | a)) - 0x1p52;
        const double rounded = fma(at, units, -0.5) + 0x1.8p52;
        return static_cast<uint32_t>(__double_as_longlong(rounded)) + 1;
    }

    __device__ void set_there(Row &row, uint32_t r, const shuf_primefold_map &m) const
    {
        row.map[r] = {fraction(m.multiplier), static_cast<uint32_t>(m.fold)};
    }

    __device__ void set_addend_there(Row &row, uint64_t addend) const
    {
        row.addend = fraction(addend);
    }

    __device__ __forceinline__ uint32_t start(const Row &keys, uint64_t position) const
    {
        const uint32_t fraction = static_cast<uint32_t>(position) * keys.map[0].multiplier;
        return direction == Direction::forward ? fraction + keys.addend : fraction;
    }

    /* The distance, which is not reduced modulo p: the rounding of a reduced distance would add to
     * the error of each position. */
    static uint64_t distance(uint64_t stride, uint64_t times, uint64_t)
    {
        return stride * times;
    }

    static uint32_t step_of(const Row &keys, uint64_t distance, uint64_t)
    {
        return static_cast<uint32_t>(distance) * keys.map[0].multiplier;
    }

    __device__ __forceinline__ uint32_t step_there(const Row &keys, uint64_t distance) const
    {
        return static_cast<uint32_t>(distance) * keys.map[0].multiplier;
    }

    __device__ __forceinline__ uint32_t add(uint32_t fraction, uint32_t step) const
    {
        return fraction + step;
    }

    __device__ __forceinline__ uint32_t first(uint32_t fraction) const
    {
        return __umulhi(fraction, p);
    }

    /* Changes only the bits of shuf__primefold_free(), so the result stays below p. */
    __device__ __forceinline__ uint32_t folded(uint32_t x, uint32_t fold) const
    {
        const uint32_t free = bits_below_top(x ^ p);
        if constexpr (direction == Direction::forward)
            return x ^ lowest(x >> SHUF_PRIMEFOLD_SHIFT_SMALL ^ fold, free);
        const uint32_t kept = x ^ lowest(x, free);
        uint32_t y = lowest(x ^ kept >> SHUF_PRIMEFOLD_SHIFT_SMALL ^ fold, free);
#pragma unroll
        for (int by = SHUF_PRIMEFOLD_SHIFT_SMALL; by < 16; by *= 2)
            y ^= y >> by;
        return kept | y;
    }

    /* Does the fold after map r - 1, and then map r; r >= 1. */
    __device__ __forceinline__ uint32_t step(const Row &keys, int r, uint32_t x) const
    {
        const bool adds = direction == Direction::inverse && r == (Fixed ? Maps : maps) - 1;
        const uint32_t fraction = folded(x, keys.map[r - 1].fold) * keys.map[r].multiplier;
        return __umulhi(adds ? fraction + keys.addend : fraction, p);
    }

    __device__ __forceinline__ uint32_t rest(const Row &keys, uint32_t x) const
    {
#pragma unroll 1
        for (int r = 1; r < (Fixed ? Maps : maps); r++)
            x = step(keys, r, x);
        return x;
    }

    template <int Groups>
    __device__ __forceinline__ void
    evaluate_unchecked(const Row &keys, uint32_t (&x)[Groups][group], uint32_t &) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++) {
            if (!Fixed && r >= maps)
                break;
#pragma unroll
            for (int i = 0; i < Groups * group; i++)
                x[i / group][i % group] = step(keys, r, x[i / group][i % group]);
        }
    }

    __device__ __forceinline__ uint32_t most(const uint32_t (&x)[group]) const
    {
        return max(max(x[0], x[1]), max(x[2], x[3]));
    }

    __device__ __forceinline__ uint32_t settled(uint32_t x) const
    {
        return x;
    }

    __device__ __forceinline__ bool in_range(uint32_t) const
    {
        return true;
    }

    __device__ __forceinline__ bool is_below(uint32_t most) const
    {
        return most < n;
    }
};

} // namespace shuf

#endif
