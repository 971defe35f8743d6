/* SPDX-License-Identifier: MIT
 *
 * Orders that are made of many rows of `primefold` on the GPU, as asynchronous work: windowed
 * orders (shuf/windowed.h), and mixtures (host/mixture.h) of uniform sources.
 */
#ifndef SHUF__CUDA_ORDERS_CUH
#define SHUF__CUDA_ORDERS_CUH

#include "backend.h"
#include "host/mixture.h"
#include "simd/simd_ops.h"

#include <cuda_runtime.h>

namespace shuf
{

/* ---- Windowed orders ---- */

/* Whether the values are much fewer than the chunks between them. The host computes them then. */
bool windowed_is_sparse(const shuf__permutation &p);

/* The scratch memory of windowed_async(), in bytes. */
uint64_t windowed_bytes(const shuf__permutation &p, unsigned width);

/* Queues the values of a permutation with windows. `out` and `scratch` begin at multiples of 16
 * bytes. Values by the host are copied from its memory, which the call then frees, so no graph may
 * capture them. *cancelled says whether the computation was cancelled before all was queued. */
cudaError_t windowed_async(const shuf__simd_ops *simd, int threads,
                           const shuf__computation &computation, void *out, void *scratch,
                           cudaStream_t stream, bool *cancelled);

/* ---- Mixtures ---- */

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
