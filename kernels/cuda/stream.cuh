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

/* A summary that stores no values (stream_sum.cuh). */
struct Summary {
    bool moments;                    /* sums too, else only the fingerprint */
    uint64_t index;                  /* of the first value in the result */
    double centre, scale;            /* see ops->sums */
    unsigned long long *fingerprint; /* device memory; the launches add to it */
    shuf__sums *parts;               /* device memory for sums_parts partial sums */
    int count;                       /* the partial sums that the launches make; 0 without sums */
};

/* Where the values of a stream go: to memory, or into a summary. `out` begins at a multiple of 16
 * bytes. With a signal there are at most tuning::tile values; a single block computes them and
 * gives the signal. */
struct Target {
    void *out;
    const Signal *signal; /* NULL: none */
    Summary *summary;     /* NULL: none. Else it has no `out` */
};

/* Queues the computation of the values, in one launch or two. */
cudaError_t stream_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                         cudaStream_t stream);

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

#define SHUF__ROW(NAME, name)                                                       \
    cudaError_t name##_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, \
                             const Target &to, cudaStream_t stream);                \
    cudaError_t name##_load();
SHUF__STREAM_KERNELS(SHUF__ROW)
#undef SHUF__ROW

/* The summary of the values of a GAUSS stream. */
cudaError_t gauss_sum_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, Summary *summary,
                            cudaStream_t stream);

/* The largest number of partial sums. Each thread block makes one, and the host adds them in
 * order. */
constexpr int sums_parts = 1024;

__host__ __device__ inline shuf__sums sum_of(const shuf__sums &a, const shuf__sums &b)
{
    return {{a.power[0] + b.power[0], a.power[1] + b.power[1], a.power[2] + b.power[2],
             a.power[3] + b.power[3]},
            fmin(a.least, b.least),
            fmax(a.largest, b.largest)};
}

/* `parts` is device memory for sums_parts partial sums. The call sets *count to the number of sums
 * that it uses. values >= 1. */
cudaError_t sums_async(const void *data, shuf_dtype dtype, uint64_t values, double centre,
                       double scale, shuf__sums *parts, int *count, cudaStream_t stream);

} // namespace shuf

#endif
