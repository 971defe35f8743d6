/* SPDX-License-Identifier: MIT
 *
 * Ways to transpose a matrix that lies in the registers of neighbouring lanes, a row
 * each; for every way and size the kernel that does so, and one that needs it for a
 * Fourier transform.
 */
#ifndef SHUF__BENCH_EXCHANGE_CUH
#define SHUF__BENCH_EXCHANGE_CUH

#include <cstddef>

namespace bench
{

constexpr int exchange_threads = 128; /* of a block */
constexpr int fft_lanes = 16, fft_points = 256;
constexpr int fft_block = exchange_threads / fft_lanes; /* transforms that a block makes at once */

/* Of matrices of size x size words, a lane each row: `times` transpositions of what each thread
 * finds at its place, void (const uint32_t *in, uint32_t *out, int times). A thread's row comes
 * after that of the thread before. */
struct Transposes {
    const char *way;
    int size;
    const void *kernel;
};

/* Of 256 complex points by 16 lanes, both orders natural, divided by 16: `times` transforms of
 * each of `batch`, a multiple of fft_block, void (const float2 *in, float2 *out, int batch, int
 * times). */
struct Transforms {
    const char *way;
    const void *kernel;
};

/* registers.cu, and indexed.cu: the only one that may keep an array in local memory. */
extern const Transposes register_transposes[16], indexed_transposes[4];
extern const Transforms register_transforms[4], indexed_transforms[1];

} // namespace bench

#endif
