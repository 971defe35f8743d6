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

template <int Rounds> struct Words {
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
    __device__ __forceinline__ void draw(uint32_t low, uint32_t upper, uint32_t *word) const
    {
        uint32_t c0 = low, c1 = upper, c2 = high[0], c3 = high[1];
#pragma unroll
        for (int r = 0; r < Rounds; r++) {
            const uint64_t left = uint64_t{SHUF_PHILOX4X32_M0} * c0;
            const uint64_t right = uint64_t{SHUF_PHILOX4X32_M1} * c2;
            c0 = static_cast<uint32_t>(right >> 32) ^ c1 ^ key[r][0];
            c1 = static_cast<uint32_t>(right);
            c2 = static_cast<uint32_t>(left >> 32) ^ c3 ^ key[r][1];
            c3 = static_cast<uint32_t>(left);
        }
        word[0] = c0;
        word[1] = c1;
        word[2] = c2;
        word[3] = c3;
    }
};

} // namespace shuf

#endif
