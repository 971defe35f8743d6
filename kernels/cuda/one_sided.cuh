/* SPDX-License-Identifier: MIT
 *
 * One-sided plans of exchanges (docs/cluster.md), on the GPU. exchange.cu calls these functions.
 */
#ifndef SHUF__CUDA_ONE_SIDED_CUH
#define SHUF__CUDA_ONE_SIDED_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace shuf
{

/* The bytes of the workspace, which is device memory: up to 2.25 for each place. Asks the current
 * device. */
uint64_t one_sided_bytes(const shuf__plan &plan);

/* Queues the computation of a plan to `out`, which is device memory. The computation has its
 * workspace. The call checks for cancellation before each launch. */
cudaError_t one_sided_async(const shuf__computation &computation, void *out, cudaStream_t stream,
                            bool *cancelled);

} // namespace shuf

#endif
