/* SPDX-License-Identifier: MIT
 *
 * The plan by which a rank exchanges its records with others (docs/cluster.md), on the GPU.
 */
#ifndef SHUF__CUDA_EXCHANGE_CUH
#define SHUF__CUDA_EXCHANGE_CUH

#include "host/exchange.h"

#include <cuda_runtime.h>

namespace shuf
{

/* The bytes of the workspace, which is device memory: counters, and for sorts 8 for each record of
 * the larger sorted side, or 12 if the numbers have 64 bits. Never 0. Asks the current device. */
uint64_t exchange_bytes(const shuf__request &request);

/* Queues the computation of a plan to `out`, which is device memory. The computation has its
 * workspace. For n <= SHUF_PRIMEFOLD_EXACT one of the host's processors makes the plan. The call
 * checks for cancellation before each sort or launch. */
cudaError_t exchange_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                           void *out, cudaStream_t stream, bool *cancelled);

} // namespace shuf

#endif
