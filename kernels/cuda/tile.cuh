/* SPDX-License-Identifier: MIT
 *
 * Numbers the kept values of a tile, and stores the requested ones.
 */
#ifndef SHUF__CUDA_TILE_CUH
#define SHUF__CUDA_TILE_CUH

#include "backend.h"
#include "bijection.cuh"
#include "slice.h"

namespace shuf
{

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
