/* SPDX-License-Identifier: MIT
 *
 * Kernels for benchmarks only. They use Gaussian values in registers, without a store, by the
 * device code of the backend's kernels.
 */
#ifndef SHUF__BENCH_STREAM_KERNELS_CUH
#define SHUF__BENCH_STREAM_KERNELS_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace bench
{

/* Sums the values of a stream in each thread: whole superblocks of F64, F32 or BF16. sums: device
 * memory of not_stored_sums() bytes. */
cudaError_t not_stored_async(const shuf__request &request, int sm_count, void *sums);
uint64_t not_stored_sums(int sm_count); /* bytes */

/* Sums of z, z^2, ..., z^8 over a part of part_values values. */
constexpr int powers = 8;
constexpr uint64_t part_values = uint64_t{1} << 19;
struct Part {
    double power[powers];
};

/* Sums the powers of a stream's values: whole parts of any Gaussian type. parts: device memory for
 * count / part_values parts. */
cudaError_t moments_async(const shuf__request &request, Part *parts);

} // namespace bench

#endif
