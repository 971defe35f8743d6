/* SPDX-License-Identifier: MIT
 *
 * Words for p < 2^31. Shoup's multiplication spares the division: with an estimate q of (m x + k) /
 * p that is at most one too small, m x + k - q p lies in [0, 2 p), and the smaller of that and
 * itself less p, both unsigned, is the remainder.
 */
#ifndef SHUF__CUDA_FOLD32_CUH
#define SHUF__CUDA_FOLD32_CUH

#include "fold.cuh"

namespace shuf
{

/* p < 2^31. The estimate's addend is part of the wide product: (x * quotient + share) >> 32 misses
 * less than (p + 1) / 2^32 and floors.
 *
 * Integer logic is what this waits for: it has half of the issue slots, and a fold with its
 * condition takes three of them beside the one of a remainder. As hardly a value is beyond the
 * whole blocks, quick_rest() folds all, and tells. */
template <int Maps, Way way = Way::forward, bool watches = true> struct Fold32 : SumsModP {
    using Word = uint32_t;
    static constexpr bool is_right_past_n = true;
    static constexpr int groups = tuning::fold_hasty_groups;
    static constexpr int blocks_per_sm = tuning::fold_hasty_blocks_per_sm;
    static constexpr int row_blocks_per_sm = tuning::fold_row_blocks_per_sm;
    struct alignas(16) Map {
        uint32_t multiplier, quotient, addend, share;
    };
    struct Row {
        Map map[Maps];
        alignas(16) uint32_t fold[Maps];
    };
    uint32_t n, p, minus_p, whole;
    uint64_t inverse; /* floor((2^64 - 1) / p) */
    Row row;

    explicit Fold32(const shuf_primefold_shape &shape)
        : n(static_cast<uint32_t>(shape.n)), p(static_cast<uint32_t>(shape.p)), minus_p(0 - p),
          whole(static_cast<uint32_t>(shape.whole)), inverse(~uint64_t{0} / shape.p), row{}
    {
    }

    static void set(Row &row, int r, const shuf_primefold_map &m, uint64_t p)
    {
        row.map[r] = {static_cast<uint32_t>(m.multiplier),
                      static_cast<uint32_t>((m.multiplier << 32) / p),
                      static_cast<uint32_t>(m.addend), static_cast<uint32_t>((m.addend << 32) / p)};
        row.fold[r] = static_cast<uint32_t>(m.fold);
    }

    __device__ void set_there(Row &row, uint32_t r, const shuf_primefold_map &m) const
    {
        row.map[r] = {static_cast<uint32_t>(m.multiplier),
                      static_cast<uint32_t>(divided(m.multiplier << 32, p, inverse)),
                      static_cast<uint32_t>(m.addend),
                      static_cast<uint32_t>(divided(m.addend << 32, p, inverse))};
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

    __device__ __forceinline__ uint32_t start(const Row &keys, uint64_t position) const
    {
        return affine(keys.map[0], static_cast<uint32_t>(position));
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
        return reduced(x + step);
    }

    template <bool Check, int Values>
    __device__ __forceinline__ void maps(const Row &keys, uint32_t (&x)[Values], Watch &watch) const
    {
#pragma unroll
        for (int r = 1; r < Maps; r++) {
            const Map map = keys.map[r];
            const uint32_t fold = keys.fold[r - 1];
#pragma unroll
            for (int i = 0; i < Values; i++) {
                const uint32_t y = fold_of<way>(x[i], fold);
                if constexpr (watches)
                    watch.most_folded = max(watch.most_folded, x[i]);
                x[i] = affine(map, !Check || x[i] < whole ? y : x[i]);
            }
        }
    }

    template <int Values>
    __device__ __forceinline__ void rest(const Row &keys, uint32_t (&x)[Values]) const
    {
        Watch none{};
        maps<true>(keys, x, none);
    }

    template <int Values>
    __device__ __forceinline__ void quick_rest(const Row &keys, uint32_t (&x)[Values],
                                               Watch &watch) const
    {
        maps<false>(keys, x, watch);
#pragma unroll
        for (int i = 0; i < Values; i++)
            watch.most = max(watch.most, x[i]);
    }

    __device__ __forceinline__ bool right(const Watch &watch) const
    {
        return !watches || watch.most_folded < whole;
    }

    __device__ __forceinline__ bool is_below(uint32_t most) const
    {
        return most < n;
    }

    __device__ __forceinline__ bool finished(const Watch &watch) const
    {
        return right(watch) && is_below(watch.most);
    }
};

} // namespace shuf

#endif
