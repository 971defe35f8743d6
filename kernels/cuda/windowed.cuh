/* SPDX-License-Identifier: MIT
 *
 * Windowed orders (shuf/windowed.h) on the GPU, as asynchronous work.
 */
#ifndef SHUF__CUDA_WINDOWED_CUH
#define SHUF__CUDA_WINDOWED_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace shuf
{

/* The scratch memory of windowed_async(), in bytes. */
uint64_t windowed_bytes(const shuf__permutation &p, unsigned width);

/* Queues the values of a permutation with windows, of `width` bytes each. `out` and `scratch` begin
 * at multiples of 16 bytes. */
cudaError_t windowed_async(const shuf__permutation &p, unsigned width, void *out, void *scratch,
                           cudaStream_t stream);

} // namespace shuf

#endif
