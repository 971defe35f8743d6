/* SPDX-License-Identifier: MIT
 *
 * Words for p < 2^16.
 */
#ifndef SHUF__CUDA_FOLD16_CUH
#define SHUF__CUDA_FOLD16_CUH

#include "fold.cuh"

namespace shuf
{

/* The bits below the highest one that is set. */
__device__ __forceinline__ uint32_t below_top(uint32_t y)
{
    return 0x7fffffff >> __clz(static_cast<int>(y));
}

/* A map by the fraction of p that its value is, in units of 2^-32. As both words are
 * rounded up, it is too large by at most p of these units, which is less than 2^32 / p of them.
 *
 * Maps: at most, or exactly so many where it is Fixed. */
template <int Maps, bool Fixed, Way way = Way::forward> struct Fold16 {
    using Word = uint32_t;
    static constexpr bool is_right_past_n = true;
    static constexpr int groups = tuning::fold_groups;
    static constexpr int blocks_per_sm = tuning::fold_blocks_per_sm;
    static constexpr int row_blocks_per_sm = tuning::fold_small_row_blocks_per_sm;
    struct alignas(8) Map {
        uint32_t multiplier, addend;
    };
    /* Neighbouring rows do not begin in the same bank of shared memory. */
    static constexpr int padded = Maps % 8 == 2 ? Maps + 3 : Maps;
    struct alignas(16) Row {
        Map map[Maps];
        uint32_t fold[padded];
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
                      static_cast<uint32_t>((m.addend << 32) / p + 1)};
        row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    /* floor(a / p * 2^32) + 1: rounding is less than what is left over of a division by p. */
    __device__ __forceinline__ uint32_t fraction(uint64_t a) const
    {
        const double at = __longlong_as_double(static_cast<long long>(exponent | a)) - 0x1p52;
        const double rounded = fma(at, units, -0.5) + 0x1.8p52;
        return static_cast<uint32_t>(__double_as_longlong(rounded)) + 1;
    }

    __device__ void set_there(Row &row, uint32_t r, const shuf_primefold_map &m) const
    {
        row.map[r] = {fraction(m.multiplier), fraction(m.addend)};
        row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    __device__ __forceinline__ uint32_t start(const Row &keys, uint64_t position) const
    {
        return static_cast<uint32_t>(position) * keys.map[0].multiplier + keys.map[0].addend;
    }

    /* No value but has a position below p: reduced, a distance would round up once too often. */
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

    /* The block that p cuts short is folded in parts: see shuf__primefold_free(). */
    __device__ __forceinline__ uint32_t turned(uint32_t x, uint32_t fold) const
    {
        const uint32_t free = below_top(x ^ p);
        if constexpr (way == Way::forward)
            return x ^ ((x >> SHUF_PRIMEFOLD_SMALL_SHIFT ^ fold) & free);
        const uint32_t kept = x & ~free;
        uint32_t y = (x ^ kept >> SHUF_PRIMEFOLD_SMALL_SHIFT ^ fold) & free;
#pragma unroll
        for (int by = SHUF_PRIMEFOLD_SMALL_SHIFT; by < 16; by *= 2)
            y ^= y >> by;
        return kept | y;
    }

    template <int Values>
    __device__ __forceinline__ void rest(const Row &keys, uint32_t (&x)[Values]) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++) {
            if (!Fixed && r >= maps)
                break;
            const Map map = keys.map[r];
            const uint32_t fold = keys.fold[r - 1];
#pragma unroll
            for (int i = 0; i < Values; i++)
                x[i] = __umulhi(turned(x[i], fold) * map.multiplier + map.addend, p);
        }
    }

    template <int Values>
    __device__ __forceinline__ void quick_rest(const Row &keys, uint32_t (&x)[Values],
                                               Watch &watch) const
    {
        rest(keys, x);
#pragma unroll
        for (int i = 0; i < Values; i++)
            watch.most = max(watch.most, x[i]);
    }

    __device__ __forceinline__ bool right(const Watch &) const
    {
        return true;
    }

    __device__ __forceinline__ bool is_below(uint32_t most) const
    {
        return most < n;
    }

    __device__ __forceinline__ bool finished(const Watch &watch) const
    {
        return is_below(watch.most);
    }
};

} // namespace shuf

#endif
