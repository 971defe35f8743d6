/* SPDX-License-Identifier: MIT
 *
 * The words of a stream (shuf/stream.h) on the GPU, with the round keys worked out
 * by the host: they are operands in constant memory.
 */
#ifndef SHUF__CUDA_PHILOX_CUH
#define SHUF__CUDA_PHILOX_CUH

#include "shuf/stream.h"

#include <cuda_runtime.h>

namespace shuf
{

/* Early: also the words after so many rounds; 0: none. */
template <int Rounds, int Early = 0> struct Words {
    uint32_t key[Rounds][2], high[2];

    explicit Words(const shuf_stream &s) : high{s.high[0], s.high[1]}
    {
        for (uint32_t r = 0; r < Rounds; r++) {
            key[r][0] = s.key[0] + r * SHUF_PHILOX4X32_WEYL0;
            key[r][1] = s.key[1] + r * SHUF_PHILOX4X32_WEYL1;
        }
    }

    /* Words 4 * index to 4 * index + 3, by the halves of the index. Of the first round one product,
     * and of the second one, are the same for all threads of a warp. */
    __device__ __forceinline__ void draw(uint32_t low, uint32_t upper, uint32_t *word,
                                         uint32_t *early = nullptr) const
    {
        uint32_t c[4] = {low, upper, high[0], high[1]};
#pragma unroll
        for (int r = 0; r < Rounds; r++) {
            const uint64_t left = uint64_t{SHUF_PHILOX4X32_M0} * c[0];
            const uint64_t right = uint64_t{SHUF_PHILOX4X32_M1} * c[2];
            c[0] = static_cast<uint32_t>(right >> 32) ^ c[1] ^ key[r][0];
            c[1] = static_cast<uint32_t>(right);
            c[2] = static_cast<uint32_t>(left >> 32) ^ c[3] ^ key[r][1];
            c[3] = static_cast<uint32_t>(left);
            if (Early != 0 && r + 1 == Early)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    early[i] = c[i];
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = c[i];
    }
};

} // namespace shuf

#endif
