/* SPDX-License-Identifier: MIT
 *
 * Ways to transpose a matrix in the registers of neighbouring lanes, a row each. For every way and
 * size there are two kernels: one transposes, and one needs the transposition for a Fourier
 * transform.
 */
#ifndef SHUF__BENCH_EXCHANGE_CUH
#define SHUF__BENCH_EXCHANGE_CUH

#include <cstddef>

namespace bench
{

constexpr int exchange_threads = 128; /* of a block */
constexpr int fft_lanes = 16, fft_points = 256;
constexpr int fft_block = exchange_threads / fft_lanes; /* transforms that a block makes together */

/* Kernels for matrices of size x size words, a lane each row. They make `times` transpositions of
 * the words at each thread's place: void (const uint32_t *in, uint32_t *out, int times). A thread's
 * row follows that of the thread before. */
struct Transposes {
    const char *way;
    int size;
    const void *kernel;
};

/* Kernels for transforms of 256 complex points by 16 lanes, in natural order on both sides, divided
 * by 16. They make `times` transforms of each of `batch` inputs, a multiple of fft_block: void
 * (const float2 *in, float2 *out, int batch, int times). */
struct Transforms {
    const char *way;
    const void *kernel;
};

/* From registers.cu and indexed.cu. Only indexed.cu may keep an array in local memory. */
extern const Transposes register_transposes[16], indexed_transposes[4];
extern const Transforms register_transforms[4], indexed_transforms[1];

} // namespace bench

#endif
