/* SPDX-License-Identifier: MIT
 *
 * Streams on the GPU, as asynchronous work; and sums over numbers.
 */
#ifndef SHUF__CUDA_STREAM_CUH
#define SHUF__CUDA_STREAM_CUH

#include "backend.h"
#include "quick.cuh"

#include <cuda_runtime.h>

namespace shuf
{

/* Device memory that Gaussian streams need: shuf_gauss_table as floats, which hold its whole
 * numbers and all sums of 64 of them exactly. */
cudaError_t gauss_table_make(float **table);

/* Queues the values, in one launch or two; with a signal, in a single block that gives it, of at
 * most tuning::tile values. `out` begins at a multiple of 16 bytes. */
cudaError_t gauss_async(const shuf__stream &s, shuf_dtype dtype, const float *table, int sm_count,
                        void *out, const Signal *signal, cudaStream_t stream);
cudaError_t uniform_async(const shuf__stream &s, shuf_dtype dtype, void *out, const Signal *signal,
                          cudaStream_t stream);
cudaError_t box_muller_async(const shuf__stream &s, shuf_dtype dtype, void *out,
                             const Signal *signal, cudaStream_t stream);

/* Loads their quick kernels. */
cudaError_t gauss_load();
cudaError_t uniform_load();
cudaError_t box_muller_load();

/* What blocks of threads have summed, to be added in order. */
constexpr int sums_parts = 1024;

/* parts: device memory of sums_parts; *count of them are written. values >= 1. */
cudaError_t sums_async(const void *data, shuf_dtype dtype, uint64_t values, double centre,
                       double scale, shuf__sums *parts, int *count, cudaStream_t stream);

} // namespace shuf

#endif
