/* SPDX-License-Identifier: MIT
 *
 * Windowed orders (shuf/windowed.h) on the GPU, as asynchronous work.
 */
#ifndef SHUF__CUDA_WINDOWED_CUH
#define SHUF__CUDA_WINDOWED_CUH

#include "backend.h"
#include "simd/simd_ops.h"

#include <cuda_runtime.h>

namespace shuf
{

/* The scratch memory of windowed_async(), in bytes. */
uint64_t windowed_bytes(const shuf__permutation &p, unsigned width);

/* Queues the values of a permutation with windows. `out` and `scratch` begin at multiples of 16
 * bytes. If the values are much fewer than the chunks between them, the host computes them, and the
 * call copies them. *cancelled says whether the computation was cancelled before all was queued. */
cudaError_t windowed_async(const shuf__simd_ops *simd, int threads,
                           const shuf__computation &computation, void *out, void *scratch,
                           cudaStream_t stream, bool *cancelled);

} // namespace shuf

#endif
