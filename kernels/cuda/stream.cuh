/* SPDX-License-Identifier: MIT
 *
 * Random streams, and sums over numbers, on the GPU, as asynchronous work.
 */
#ifndef SHUF__CUDA_STREAM_CUH
#define SHUF__CUDA_STREAM_CUH

#include "backend.h"
#include "quick.cuh"

#include <cuda_runtime.h>

namespace shuf
{

/* Queues the values, in one launch or two. `out` begins at a multiple of 16 bytes. With a signal
 * there are at most tuning::tile values; a single block computes them and gives the signal. */
cudaError_t stream_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, void *out,
                         const Signal *signal, cudaStream_t stream);

/* Loads the kernels of quick computations of streams. */
cudaError_t stream_load();

/* The same for each distribution. */
cudaError_t gauss_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, void *out,
                        const Signal *signal, cudaStream_t stream);
cudaError_t uniform_async(const shuf__stream &s, shuf_dtype dtype, void *out, const Signal *signal,
                          cudaStream_t stream);
cudaError_t box_muller_async(const shuf__stream &s, shuf_dtype dtype, void *out,
                             const Signal *signal, cudaStream_t stream);
cudaError_t exponential_async(const shuf__stream &s, shuf_dtype dtype, void *out,
                              const Signal *signal, cudaStream_t stream);
cudaError_t bernoulli_async(const shuf__stream &s, shuf_dtype dtype, void *out,
                            const Signal *signal, cudaStream_t stream);
cudaError_t gauss_load();
cudaError_t uniform_load();
cudaError_t box_muller_load();
cudaError_t exponential_load();
cudaError_t bernoulli_load();

/* The largest number of partial sums. Each thread block makes one, and the host adds them in
 * order. */
constexpr int sums_parts = 1024;

/* `parts` is device memory for sums_parts partial sums. The call sets *count to the number of sums
 * that it uses. values >= 1. */
cudaError_t sums_async(const void *data, shuf_dtype dtype, uint64_t values, double centre,
                       double scale, shuf__sums *parts, int *count, cudaStream_t stream);

} // namespace shuf

#endif
