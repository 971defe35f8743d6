/* SPDX-License-Identifier: MIT
 *
 * The words of a stream (shuf/stream.h) on the GPU. The host computes the round keys, and the
 * kernels read them from constant memory.
 */
#ifndef SHUF__CUDA_PHILOX_CUH
#define SHUF__CUDA_PHILOX_CUH

#include "shuf/stream.h"

#include <cuda_runtime.h>

namespace shuf
{

template <int Rounds> struct Words {
    uint32_t key[Rounds][2], high[2];

    explicit Words(const shuf_stream &s) : high{s.high[0], s.high[1]}
    {
        for (uint32_t r = 0; r < Rounds; r++) {
            key[r][0] = s.key[0] + r * SHUF_PHILOX4X32_WEYL0;
            key[r][1] = s.key[1] + r * SHUF_PHILOX4X32_WEYL1;
        }
    }

    /* Applies rounds number From to To - 1 to the four words. */
    template <int From, int To> __device__ __forceinline__ void rounds(uint32_t *c) const
    {
#pragma unroll
        for (int r = From; r < To; r++) {
            const uint64_t left = uint64_t{SHUF_PHILOX4X32_M0} * c[0];
            const uint64_t right = uint64_t{SHUF_PHILOX4X32_M1} * c[2];
            c[0] = static_cast<uint32_t>(right >> 32) ^ c[1] ^ key[r][0];
            c[1] = static_cast<uint32_t>(right);
            c[2] = static_cast<uint32_t>(left >> 32) ^ c[3] ^ key[r][1];
            c[3] = static_cast<uint32_t>(left);
        }
    }

    /* Makes words 4 * index to 4 * index + 3, with index = upper << 32 | low. */
    __device__ __forceinline__ void draw(uint32_t low, uint32_t upper, uint32_t *word) const
    {
        word[0] = low;
        word[1] = upper;
        word[2] = high[0];
        word[3] = high[1];
        rounds<0, Rounds>(word);
    }
};

/* Does the same as shuf_stream_draw_make(), with precomputed round keys. */
__device__ __forceinline__ shuf_stream_draw draw_words(const Words<SHUF_GAUSS_ROUNDS> &words,
                                                       uint64_t index)
{
    shuf_stream_draw d;
    uint32_t c0 = static_cast<uint32_t>(index), c1 = words.high[0];
    uint32_t c2 = static_cast<uint32_t>(index >> 32), c3 = words.high[1];
#pragma unroll
    for (int r = 0; r < SHUF_GAUSS_ROUNDS; r++) {
        if (r == SHUF_GAUSS_EARLY_ROUNDS) {
            d.early[0] = c0;
            d.early[1] = c1;
            d.early[2] = c2;
            d.early[3] = c3;
        }
        const uint64_t left = uint64_t{SHUF_PHILOX4X32_M0} * c0;
        const uint64_t right = uint64_t{SHUF_PHILOX4X32_M1} * c2;
        c0 = static_cast<uint32_t>(right >> 32) ^ c1 ^ words.key[r][0];
        c1 = static_cast<uint32_t>(right);
        c2 = static_cast<uint32_t>(left >> 32) ^ c3 ^ words.key[r][1];
        c3 = static_cast<uint32_t>(left);
    }
    d.word[0] = c0;
    d.word[1] = c1;
    d.word[2] = c2;
    d.word[3] = c3;
    return d;
}

} // namespace shuf

#endif
