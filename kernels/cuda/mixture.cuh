/* SPDX-License-Identifier: MIT
 *
 * Mixtures (host/mixture.h) of uniform sources on the GPU, as asynchronous work.
 */
#ifndef SHUF__CUDA_MIXTURE_CUH
#define SHUF__CUDA_MIXTURE_CUH

#include "host/mixture.h"

#include <cuda_runtime.h>

namespace shuf
{

/* Shares of more positions would need a division of 128 bits. */
constexpr uint64_t mixture_most = uint64_t{1} << 50;

/* The scratch memory of mixture_async(), in bytes. */
size_t mixture_bytes(const shuf__mixture *m, uint64_t count);

/* Queues the indices of the records at the positions first to first + count - 1, which are below
 * mixture_most and the length. */
cudaError_t mixture_async(const shuf__mixture &m, uint64_t first, uint64_t count, uint64_t *index,
                          void *scratch, cudaStream_t stream);

} // namespace shuf

#endif
