/* SPDX-License-Identifier: MIT
 *
 * Evaluates philox24 and lcg on the GPU, numbers the kept values of a tile, and stores the
 * requested ones. The bijections give the same numbers as the inline C in shuf/, but use 32-bit
 * registers, and each thread computes several values.
 *
 * A bijection is a struct that the host makes for n. Its evaluate(key, x) replaces each x[i] by
 * f(x[i]). `key` points to the 24 key words of a row in shared memory. Word is uint32_t if B <= 32,
 * else uint64_t.
 */
#ifndef SHUF__CUDA_TILE_CUH
#define SHUF__CUDA_TILE_CUH

#include "backend.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "slice.h"
#include "tuning.cuh"

namespace shuf
{

/* ---- Bijections ---- */

constexpr int key_words = SHUF_PHILOX24_ROUNDS; /* enough for any algorithm */

/* philox24. Both halves fit 32 bits, because B is at most 62. A round costs one wide and one plain
 * multiply-add and two logic operations. The unit that multiplies limits the speed, and a wide
 * multiplication counts twice. With Odd, B is odd and the right half is one bit longer. A round
 * then costs one more multiply-add and one shift, which carry this bit over.
 *
 * In `right` the bits above right_bits are undefined. The mask on `left` and the last step remove
 * them. */
template <typename Word_, bool Odd> struct Philox24 {
    using Word = Word_;
    static constexpr shuf_purpose purpose = SHUF_PURPOSE_PHILOX24;
    uint32_t left_mask, right_mask;
    uint32_t right_to_top; /* a factor instead of a shift, because the shifter is the busier unit */
    int left_bits, right_bits;

    explicit Philox24(uint64_t n)
    {
        unsigned bits = shuf_domain_bits(n);
        left_bits = static_cast<int>(bits / 2);
        right_bits = static_cast<int>((bits + 1) / 2);
        left_mask = (uint32_t{1} << left_bits) - 1;
        right_mask = (uint32_t{1} << right_bits) - 1;
        right_to_top = uint32_t{1} << (32 - right_bits);
    }

    __device__ __forceinline__ void round(uint32_t key, uint32_t &left, uint32_t &right) const
    {
        constexpr uint32_t m_lo = static_cast<uint32_t>(SHUF_PHILOX24_MULTIPLIER);
        constexpr uint32_t m_hi = static_cast<uint32_t>(SHUF_PHILOX24_MULTIPLIER >> 32);
        uint64_t product = static_cast<uint64_t>(left) * m_lo;
        uint32_t hi = static_cast<uint32_t>(product >> 32) + left * m_hi;
        uint32_t lo = static_cast<uint32_t>(product);
        left = (hi ^ key ^ right) & left_mask;
        right = Odd ? __funnelshift_l(right * right_to_top, lo, 1) : lo;
    }

    template <int Items>
    __device__ __forceinline__ void evaluate(const uint32_t *key, Word (&x)[Items]) const
    {
        uint32_t left[Items], right[Items];
#pragma unroll
        for (int i = 0; i < Items; i++) {
            left[i] = static_cast<uint32_t>(x[i] >> right_bits);
            right[i] = static_cast<uint32_t>(x[i]) & right_mask;
        }
#pragma unroll tuning::rounds_unrolled
        for (int r = 0; r < SHUF_PHILOX24_ROUNDS; r++) {
            uint32_t k = key[r];
#pragma unroll
            for (int i = 0; i < Items; i++)
                round(k, left[i], right[i]);
        }
#pragma unroll
        for (int i = 0; i < Items; i++)
            x[i] = static_cast<Word>(left[i]) << right_bits | (right[i] & right_mask);
    }
};

template <typename Word_> struct Lcg {
    using Word = Word_;
    static constexpr shuf_purpose purpose = SHUF_PURPOSE_LCG;
    Word mask;

    explicit Lcg(uint64_t n) : mask(static_cast<Word>((uint64_t{1} << shuf_domain_bits(n)) - 1))
    {
    }

    template <int Items>
    __device__ __forceinline__ void evaluate(const uint32_t *key, Word (&x)[Items]) const
    {
        Word a = static_cast<Word>(uint64_t{key[1]} << 32 | key[0] | 1);
        Word c = static_cast<Word>(uint64_t{key[3]} << 32 | key[2]);
#pragma unroll
        for (int i = 0; i < Items; i++)
            x[i] = (a * x[i] + c) & mask;
    }
};

/* ---- Tiles ---- */

/* The parameters that all blocks of a launch share. */
struct Launch : shuf__slice {
    uint64_t tiles;                 /* of a row */
    uint64_t first_tile, first_row; /* the first tile and the first row of this launch */
    uint64_t domain;                /* 2^B */
    uint32_t step, step_magic;      /* min(stride, tile), ceil(2^32 / step) */
    uint32_t key[key_words];        /* the key words, if there is only one row */
    const uint32_t *keys;           /* the key words of several rows, in memory; NULL: use `key` */
    uint64_t base;                  /* kept values before this launch; not used if n = 2^B */
    uint64_t *base_out; /* receives the number of kept values up to the end of this launch */
    uint64_t *starts;   /* receives the number before each tile of the index; both may be NULL */
};

/* A launch over all rows; the caller sets its first tile and row. */
inline Launch make_launch(const shuf__permutation &p, shuf_purpose purpose)
{
    Launch launch{};
    static_cast<shuf__slice &>(launch) = shuf__slice_make(&p);
    launch.domain = uint64_t{1} << shuf_domain_bits(p.n);
    launch.step = static_cast<uint32_t>(p.stride < tuning::tile ? p.stride : tuning::tile);
    launch.step_magic =
        static_cast<uint32_t>(((uint64_t{1} << 32) + launch.step - 1) / launch.step);
    if (p.rows == 1)
        for (int block = 0; block < key_words / 8; block++)
            shuf_key_words(shuf__permutation_key(&p), p.epoch, purpose, block,
                           launch.key + 8 * block);
    return launch;
}

/* Computes the rank of each of this thread's values among the kept values of the tile. Item i of
 * lane j is value number 32 * i + j of the warp. So one ballot ranks 32 values, and a warp stores
 * neighbouring values. */
template <int MostWarps, typename Word, int Items>
__device__ __forceinline__ uint32_t rank_kept(const Word (&x)[Items], Word n,
                                              uint32_t (&rank)[Items], uint32_t *warp_kept,
                                              int warps)
{
    uint32_t lanes_before = (1u << (threadIdx.x % 32)) - 1, kept = 0;
#pragma unroll
    for (int i = 0; i < Items; i++) {
        uint32_t ballot = __ballot_sync(0xffffffffu, x[i] < n);
        rank[i] = kept + __popc(ballot & lanes_before);
        kept += __popc(ballot);
    }
    if (threadIdx.x % 32 == 0)
        warp_kept[threadIdx.x / 32] = kept;
    __syncthreads();
    uint32_t before = 0, total = 0;
#pragma unroll
    for (int w = 0; w < MostWarps; w++) {
        before += w < static_cast<int>(threadIdx.x / 32) ? warp_kept[w] : 0;
        total += w < warps ? warp_kept[w] : 0;
    }
#pragma unroll
    for (int i = 0; i < Items; i++)
        rank[i] += before;
    return total;
}

template <bool Strided, typename Word, typename Out, int Items>
__device__ __forceinline__ void store(const Launch &launch, uint64_t position, uint32_t kept,
                                      const Word (&x)[Items], const uint32_t (&rank)[Items],
                                      Out *row_out)
{
    const shuf__hits hits = shuf__slice_hits(&launch, position, kept);
    const auto first = static_cast<uint32_t>(hits.first), end = static_cast<uint32_t>(hits.end);
    Out *out = row_out + hits.index;
#pragma unroll
    for (int i = 0; i < Items; i++) {
        uint32_t ahead = rank[i] - first; /* a rank before `first` wraps to a large number */
        bool requested = x[i] < static_cast<Word>(launch.n) && rank[i] >= first && rank[i] < end;
        if constexpr (Strided) {
            /* The quotient is exact for requested values, because ahead * step < 2^32. */
            uint32_t quotient = __umulhi(ahead, launch.step_magic);
            if (requested && quotient * launch.step == ahead)
                out[quotient] = static_cast<Out>(x[i]);
        } else if (requested) {
            out[ahead] = static_cast<Out>(x[i]);
        }
    }
}

} // namespace shuf

#endif
