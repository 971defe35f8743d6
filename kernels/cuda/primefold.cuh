/* SPDX-License-Identifier: MIT
 *
 * `primefold` as the GPU runs it: the same numbers as shuf/primefold.h, in words
 * that suit p.
 *
 * A form knows p and has, of a row's maps, first() for the first of them, add() for
 * its sums along the positions, and rest() for everything after it. Shoup's multiplication spares
 * the division: with an estimate q of (m x + k) / p that is at most one too small, m x + k - q p
 * lies in [0, 2 p), and the smaller of that and itself less p, both unsigned, is the remainder.
 */
#ifndef SHUF__CUDA_PRIMEFOLD_CUH
#define SHUF__CUDA_PRIMEFOLD_CUH

#include "shuf/primefold.h"
#include "tuning.cuh"

#include <cuda_runtime.h>

namespace shuf
{

/* floor(a / p), a < 2^63, without a division: `inverse` is floor((2^64 - 1) / p). */
__device__ __forceinline__ uint64_t divided(uint64_t a, uint64_t p, uint64_t inverse)
{
    const uint64_t q = __umul64hi(a, inverse);
    return q + (a - q * p >= p);
}

/* floor(a * 2^64 / p), a < p < 2^63, bit by bit: on the device once a map of a wide row. */
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

/* x ^ block ^ fold where block < blocks. Two instructions; the compiler would take four. */
__device__ __forceinline__ uint32_t folded_word(uint32_t x, uint32_t block, uint32_t blocks,
                                                uint32_t fold)
{
    asm("{\n\t"
        ".reg .pred whole;\n\t"
        "setp.lt.u32 whole, %1, %2;\n\t"
        "@whole lop3.b32 %0, %0, %1, %3, 0x96;\n\t"
        "}"
        : "+r"(x)
        : "r"(block), "r"(blocks), "r"(fold));
    return x;
}

/* p < 2^31. A map takes five slots of the multiplier's pipe, in four instructions, and one of the
 * other; a fold three. The estimate's addend is part of the wide product: (x * quotient + share) >>
 * 32 misses less than (p + 1) / 2^32 and floors. */
template <int Maps> struct Fold32 {
    using Word = uint32_t;
    static constexpr int groups = tuning::fold_groups;
    static constexpr int blocks_per_sm = tuning::fold_blocks_per_sm;
    struct alignas(16) Map {
        uint32_t multiplier, quotient, addend, share;
    };
    struct Row {
        Map map[Maps];
        alignas(16) uint32_t fold[4];
    };
    uint32_t n, p, minus_p, blocks;
    int fold_bits;
    Row row;

    explicit Fold32(const shuf_primefold_shape &shape)
        : n(static_cast<uint32_t>(shape.n)), p(static_cast<uint32_t>(shape.p)), minus_p(0 - p),
          blocks(static_cast<uint32_t>(shape.blocks)),
          fold_bits(static_cast<int>(shape.fold_bits)), row{}
    {
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        row.map[r] = {static_cast<uint32_t>(m.multiplier),
                      static_cast<uint32_t>((m.multiplier << 32) / p),
                      static_cast<uint32_t>(m.addend), static_cast<uint32_t>((m.addend << 32) / p)};
        if (r < 4)
            row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    __device__ static void set_there(Row &row, uint32_t r, const shuf_primefold_map &m, uint64_t p,
                                     uint64_t inverse)
    {
        row.map[r] = {static_cast<uint32_t>(m.multiplier),
                      static_cast<uint32_t>(divided(m.multiplier << 32, p, inverse)),
                      static_cast<uint32_t>(m.addend),
                      static_cast<uint32_t>(divided(m.addend << 32, p, inverse))};
        if (r < 4)
            row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    __device__ __forceinline__ uint32_t reduced(uint32_t x) const
    {
        return __viaddmin_u32(x, minus_p, x);
    }

    __device__ __forceinline__ uint32_t affine(const Map &m, uint32_t x) const
    {
        const uint64_t wide = static_cast<uint64_t>(x) * m.quotient + m.share;
        const auto q = static_cast<uint32_t>(wide >> 32);
        return reduced(x * m.multiplier + m.addend + q * minus_p);
    }

    __device__ __forceinline__ uint32_t first(const Row &keys, uint64_t position) const
    {
        return affine(keys.map[0], static_cast<uint32_t>(position));
    }

    __device__ __forceinline__ uint32_t add(uint32_t x, uint32_t step) const
    {
        return reduced(x + step);
    }

    template <int Values>
    __device__ __forceinline__ void rest(const Row &keys, uint32_t (&x)[Values]) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++) {
            const Map map = keys.map[r];
            const uint32_t fold = keys.fold[r - 1];
#pragma unroll
            for (int i = 0; i < Values; i++)
                x[i] = affine(map, folded_word(x[i], x[i] >> fold_bits, blocks, fold));
        }
    }
};

/* The upper half has 31 bits or less at every width, so a fold changes the lower word alone. */
struct Fold64Base {
    using Word = uint64_t;
    static constexpr int groups = tuning::fold_wide_groups;
    static constexpr int blocks_per_sm = tuning::fold_wide_blocks_per_sm;
    uint64_t n, p;
    uint32_t blocks;
    int fold_bits;

    explicit Fold64Base(const shuf_primefold_shape &shape)
        : n(shape.n), p(shape.p), blocks(static_cast<uint32_t>(shape.blocks)),
          fold_bits(static_cast<int>(shape.fold_bits))
    {
    }

    __device__ __forceinline__ uint64_t reduced(uint64_t x) const
    {
        const uint64_t less = x - p;
        return static_cast<int64_t>(less) < 0 ? x : less;
    }

    __device__ __forceinline__ uint64_t add(uint64_t x, uint64_t step) const
    {
        return reduced(x + step);
    }

    __device__ __forceinline__ uint64_t folded(uint32_t fold, uint64_t x) const
    {
        const auto block = static_cast<uint32_t>(x >> fold_bits);
        const uint32_t low = folded_word(static_cast<uint32_t>(x), block, blocks, fold);
        return x >> 32 << 32 | low;
    }
};

/* p < 2^42: the estimate is made in double precision, on a pipe of its own, and is wrong by one
 * for one value in 2^8 at the widest and in 2^17 at p = 2^33. That shows as a remainder out of
 * range, is looked for once in all maps of four values, and mended with care.
 *
 * 2^52 + x is x with an exponent put before it. 3 * 2^51 + v is v rounded, an integer beneath an
 * exponent, which is paid for in `addend`. */
template <int Maps> struct Fold42 : Fold64Base {
    struct Map {
        uint64_t multiplier, addend;
        double ratio, share; /* m / p; k / p - 1/2 */
    };
    struct Row {
        Map map[Maps];
        uint32_t fold[Maps];
    };
    Row row;

    explicit Fold42(const shuf_primefold_shape &shape) : Fold64Base(shape), row{}
    {
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        constexpr uint64_t rounded = uint64_t{0x4338} << 48; /* 3 * 2^51 as a word */
        const auto by = static_cast<double>(p);
        row.map[r] = {m.multiplier, m.addend + rounded * p, static_cast<double>(m.multiplier) / by,
                      static_cast<double>(m.addend) / by - 0.5};
        row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    /* Right but for a multiple of p. */
    __device__ __forceinline__ uint64_t estimated(const Map &m, uint64_t x) const
    {
        constexpr uint64_t exponent = uint64_t{0x433} << 52;
        const double at = __longlong_as_double(static_cast<long long>(x | exponent)) - 0x1p52;
        const double q = fma(at, m.ratio, m.share) + 0x1.8p52;
        return x * m.multiplier + m.addend - static_cast<uint64_t>(__double_as_longlong(q)) * p;
    }

    __device__ __forceinline__ uint64_t affine(const Map &m, uint64_t x) const
    {
        const uint64_t y = estimated(m, x);
        return reduced(static_cast<int64_t>(y) < 0 ? y + p : y);
    }

    __device__ __forceinline__ uint64_t first(const Row &keys, uint64_t position) const
    {
        return affine(keys.map[0], position);
    }

    template <int Values>
    __device__ __forceinline__ void rest(const Row &keys, uint64_t (&x)[Values]) const
    {
        uint64_t y[Values];
        bool wrong = false;
#pragma unroll
        for (int i = 0; i < Values; i++)
            y[i] = x[i];
#pragma unroll
        for (int r = 1; r < Maps; r++)
#pragma unroll
            for (int i = 0; i < Values; i++) {
                y[i] = estimated(keys.map[r], folded(keys.fold[r - 1], y[i]));
                wrong |= y[i] >= p;
            }
        if (wrong)
            with_care(keys, x, y);
#pragma unroll
        for (int i = 0; i < Values; i++)
            x[i] = y[i];
    }

    template <int Values>
    __device__ __forceinline__ void with_care(const Row &keys, const uint64_t (&x)[Values],
                                              uint64_t (&y)[Values]) const
    {
#pragma unroll
        for (int i = 0; i < Values; i++)
            y[i] = x[i];
#pragma unroll 1
        for (int r = 1; r < Maps; r++)
#pragma unroll
            for (int i = 0; i < Values; i++)
                y[i] = affine(keys.map[r], folded(keys.fold[r - 1], y[i]));
    }
};

/* Any p: 3 p fits 64 bits. */
template <int Maps> struct Fold64 : Fold64Base {
    struct Map {
        uint64_t multiplier, quotient, addend;
    };
    struct Row {
        Map map[Maps];
        uint32_t fold[Maps];
    };
    Row row;

    explicit Fold64(const shuf_primefold_shape &shape) : Fold64Base(shape), row{}
    {
    }

    __host__ __device__ static void set(Row &row, uint32_t r, const shuf_primefold_map &m,
                                        uint64_t p)
    {
        row.map[r] = {m.multiplier, quotient_64(m.multiplier, p), m.addend};
        row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    __device__ static void set_there(Row &row, uint32_t r, const shuf_primefold_map &m, uint64_t p,
                                     uint64_t)
    {
        set(row, r, m, p);
    }

    __device__ __forceinline__ uint64_t affine(const Map &m, uint64_t x) const
    {
        const uint64_t y = x * m.multiplier - __umul64hi(x, m.quotient) * p;
        return add(reduced(y), m.addend);
    }

    __device__ __forceinline__ uint64_t first(const Row &keys, uint64_t position) const
    {
        return affine(keys.map[0], position);
    }

    template <int Values>
    __device__ __forceinline__ void rest(const Row &keys, uint64_t (&x)[Values]) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++)
#pragma unroll
            for (int i = 0; i < Values; i++)
                x[i] = affine(keys.map[r], folded(keys.fold[r - 1], x[i]));
    }
};

} // namespace shuf

#endif
