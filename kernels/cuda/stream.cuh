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

/* The same for each distribution. X(NAME, name): name_async() and name_load(). */
#define SHUF__STREAM_KERNELS(X) \
    X(GAUSS, gauss)             \
    X(UNIFORM, uniform)         \
    X(BOX_MULLER, box_muller)   \
    X(EXPONENTIAL, exponential) \
    X(BERNOULLI, bernoulli)     \
    X(INTEGERS, integers)

#define SHUF__ROW(NAME, name)                                                                  \
    cudaError_t name##_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, void *out, \
                             const Signal *signal, cudaStream_t stream);                       \
    cudaError_t name##_load();
SHUF__STREAM_KERNELS(SHUF__ROW)
#undef SHUF__ROW

/* The largest number of partial sums. Each thread block makes one, and the host adds them in
 * order. */
constexpr int sums_parts = 1024;

/* `parts` is device memory for sums_parts partial sums. The call sets *count to the number of sums
 * that it uses. values >= 1. */
cudaError_t sums_async(const void *data, shuf_dtype dtype, uint64_t values, double centre,
                       double scale, shuf__sums *parts, int *count, cudaStream_t stream);

} // namespace shuf

#endif
