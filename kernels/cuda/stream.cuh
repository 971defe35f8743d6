/* SPDX-License-Identifier: MIT
 *
 * Streams and sums over numbers on the GPU, as asynchronous work.
 */
#ifndef SHUF__CUDA_STREAM_CUH
#define SHUF__CUDA_STREAM_CUH

#include "backend.h"
#include "quick.cuh"

#include <cuda_runtime.h>

namespace shuf
{

/* Makes the device memory of Gaussian streams: shuf_gauss_table as floats. They hold its integers
 * and all sums of 64 of them exactly. */
cudaError_t gauss_table_make(float **table);

/* Queues the values, in one launch or two. With a signal: at most tuning::tile values, in a single
 * block that gives the signal. `out` begins at a multiple of 16 bytes. */
cudaError_t gauss_async(const shuf__stream &s, shuf_dtype dtype, const float *table, int sm_count,
                        void *out, const Signal *signal, cudaStream_t stream);
cudaError_t uniform_async(const shuf__stream &s, shuf_dtype dtype, void *out, const Signal *signal,
                          cudaStream_t stream);
cudaError_t box_muller_async(const shuf__stream &s, shuf_dtype dtype, void *out,
                             const Signal *signal, cudaStream_t stream);

/* Loads the quick kernels of streams. */
cudaError_t gauss_load();
cudaError_t uniform_load();
cudaError_t box_muller_load();

/* The largest number of partial sums: one for each thread block. The host adds them in order. */
constexpr int sums_parts = 1024;

/* parts: device memory for sums_parts partial sums; the call writes *count of them. values >= 1. */
cudaError_t sums_async(const void *data, shuf_dtype dtype, uint64_t values, double centre,
                       double scale, shuf__sums *parts, int *count, cudaStream_t stream);

} // namespace shuf

#endif
