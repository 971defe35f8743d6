/* SPDX-License-Identifier: MIT
 *
 * Weighted draws from a table in device memory. A thread makes several draws, so that their
 * look-ups wait for memory together.
 */
#include "philox.cuh"
#include "shuf/uniform.h"
#include "tuning.cuh"
#include "weights.cuh"

namespace shuf
{

namespace
{

struct Draws {
    Words<SHUF_UNIFORM_ROUNDS> words;
    const uint64_t *column;
    uint64_t first, count, stride;
    unsigned bits;
};

/* Does the same as shuf_uniform_u64(), with precomputed round keys. */
__device__ __forceinline__ uint64_t word_of(const Words<SHUF_UNIFORM_ROUNDS> &words, uint64_t draw)
{
    uint32_t word[4];
    words.draw(static_cast<uint32_t>(draw >> 1), static_cast<uint32_t>(draw >> 33), word);
    const bool odd = draw & 1;
    return uint64_t{odd ? word[3] : word[1]} << 32 | (odd ? word[2] : word[0]);
}

__global__ void __launch_bounds__(tuning::draw_threads)
    draw_columns(__grid_constant__ const Draws d, uint64_t *out)
{
    constexpr int each = tuning::columns_of_thread;
    const uint64_t mine = uint64_t{blockIdx.x} * tuning::draw_threads * each + threadIdx.x;
    uint64_t word[each], column[each];
#pragma unroll
    for (int i = 0; i < each; i++) {
        word[i] = word_of(d.words, d.first + (mine + i * tuning::draw_threads) * d.stride);
        column[i] = d.column[shuf_weights_column_of(word[i], d.bits)];
    }
#pragma unroll
    for (int i = 0; i < each; i++)
        if (mine + i * tuning::draw_threads < d.count)
            out[mine + i * tuning::draw_threads] =
                shuf_weights_draw_from(column[i], d.bits, word[i]);
}

} // namespace

cudaError_t weights_draw_async(const uint64_t *column, unsigned bits, uint64_t seed, uint64_t epoch,
                               uint64_t first, uint64_t count, uint64_t stride, uint64_t *out,
                               cudaStream_t stream)
{
    constexpr uint64_t block = tuning::draw_threads * tuning::columns_of_thread;
    const Draws draws{Words<SHUF_UNIFORM_ROUNDS>(
                          shuf_stream_make(shuf_key_of_seed(seed), epoch, SHUF_STREAM_WEIGHTED)),
                      column,
                      first,
                      count,
                      stride,
                      bits};
    if (count)
        draw_columns<<<static_cast<unsigned>((count - 1) / block + 1), tuning::draw_threads, 0,
                       stream>>>(draws, out);
    return cudaGetLastError();
}

} // namespace shuf
