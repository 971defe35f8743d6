/* SPDX-License-Identifier: MIT
 *
 * Kernels that only benchmarks have: Gaussian values that are used where they are made,
 * in registers, by the device code that the backend's kernels have.
 */
#ifndef SHUF__BENCH_STREAM_KERNELS_CUH
#define SHUF__BENCH_STREAM_KERNELS_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace bench
{

/* The values of a stream, whole superblocks of F64 or F32, summed by each thread. sums: device
 * memory of not_stored_sums(). */
cudaError_t not_stored_async(const shuf__request &request, const float *table, int sm_count,
                             void *sums);
uint64_t not_stored_sums(int sm_count); /* bytes */

/* Sums of z, z^2, ..., z^8 of a part of so many values. */
constexpr int powers = 8;
constexpr uint64_t part_values = uint64_t{1} << 19;
struct Part {
    double power[powers];
};

/* The values of a stream, whole parts of any Gaussian number: parts is device memory of count /
 * part_values of them. */
cudaError_t moments_async(const shuf__request &request, const float *table, Part *parts);

} // namespace bench

#endif
