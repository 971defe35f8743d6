/* SPDX-License-Identifier: MIT
 *
 * Methods to transpose a matrix in the registers of neighbouring lanes, one row in each lane. Each
 * method and size has two kernels: one transposes, the other uses the transposition in a Fourier
 * transform.
 */
#ifndef SHUF__BENCH_EXCHANGE_CUH
#define SHUF__BENCH_EXCHANGE_CUH

#include <cstddef>

namespace bench
{

constexpr int exchange_threads = 128; /* threads of a block */
constexpr int fft_lanes = 16, fft_points = 256;
/* transforms that a block computes together */
constexpr int fft_block = exchange_threads / fft_lanes;

/* Kernels for matrices of size x size words, one row in each lane. They transpose the words of each
 * thread `times` times: void (const uint32_t *in, uint32_t *out, int times). The row of a thread
 * follows the row of the thread before. */
struct Transposes {
    const char *method;
    int size;
    const void *kernel;
};

/* Kernels for transforms of 256 complex points by 16 lanes, in natural order on input and output,
 * divided by 16. They compute `times` transforms of each of `batch` inputs, a multiple of
 * fft_block: void (const float2 *in, float2 *out, int batch, int times). */
struct Transforms {
    const char *method;
    const void *kernel;
};

/* From registers.cu and indexed.cu. Only indexed.cu may keep an array in local memory. */
extern const Transposes register_transposes[16], indexed_transposes[4];
extern const Transforms register_transforms[4], indexed_transforms[1];

} // namespace bench

#endif
