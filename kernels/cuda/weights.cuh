/* SPDX-License-Identifier: MIT
 *
 * Weighted draws and samples (docs/spec.md, "Weighted draws") on the GPU, as asynchronous work. The
 * tables and samples are those of the host (host/weights.h).
 */
#ifndef SHUF__CUDA_WEIGHTS_CUH
#define SHUF__CUDA_WEIGHTS_CUH

#include "cuda_library.h"
#include "host/weights.h"

#include <cuda_runtime.h>

namespace shuf
{

/* More weights have no table on a GPU: CUB before CUDA 13 counts up to 2^31 - 1. */
constexpr uint64_t weights_most = uint64_t{1} << 30;

/* The findings of a pass over the weights. */
struct WeightsFound {
    unsigned long long bad;      /* the first number that is no weight, or UINT64_MAX */
    unsigned long long positive; /* the weights above 0 */
    int top;                     /* all weights are below 2^top */
};

/* Queues this pass. The functions below are for weights that are good. */
cudaError_t weights_look_async(const shuf__weight_array &weights, WeightsFound *found, int sm_count,
                               cudaStream_t stream);

/* Good weights, at least one above 0. */
struct GoodWeights {
    shuf__weight_array array;
    int top;
};

/* The scratch memory for so many weights, in bytes. 0 if the device fails; the work then fails too.
 */
size_t weight_table_bytes(uint64_t count);
size_t weight_sample_bytes(uint64_t count);

/* A sum of rounded weights. */
struct WeightSum {
    uint64_t low, high;
};

/* Makes a table in two steps, because the host needs the sum between them. */
cudaError_t weights_add_async(const GoodWeights &weights, WeightSum *sum,
                              const shuf__scratch_memory &scratch, cudaStream_t stream);
cudaError_t weight_table_async(const GoodWeights &weights, const WeightSum &sum, uint64_t *column,
                               const shuf__scratch_memory &scratch, cudaStream_t stream);

/* Writes the first `sample` indices of the order without replacement. */
cudaError_t weight_sample_async(const GoodWeights &weights, uint64_t seed, uint64_t epoch,
                                uint64_t sample, uint64_t *out, const shuf__scratch_memory &scratch,
                                cudaStream_t stream);

/* Writes `count` draws, those with the numbers first, first + stride, ..., from a table with
 * 2^bits columns. */
cudaError_t weights_draw_async(const uint64_t *column, unsigned bits, uint64_t seed, uint64_t epoch,
                               uint64_t first, uint64_t count, uint64_t stride, uint64_t *out,
                               cudaStream_t stream);

/* ---- Single weights of an array in device memory ---- */

__device__ __forceinline__ uint64_t weight_bits(const shuf__weight_array &weights, uint64_t i)
{
    return weights.type == SHUF_F32 ? static_cast<const uint32_t *>(weights.values)[i]
                                    : static_cast<const uint64_t *>(weights.values)[i];
}

__device__ __forceinline__ shuf_weight weight_of(const shuf__weight_array &weights, uint64_t bits)
{
    if (weights.type == SHUF_U64)
        return {bits, 0};
    return weights.type == SHUF_F64 ? shuf_weight_of_f64(bits)
                                    : shuf_weight_of_f32(static_cast<uint32_t>(bits));
}

__device__ __forceinline__ shuf_weight weight_at(const shuf__weight_array &weights, uint64_t i)
{
    return weight_of(weights, weight_bits(weights, i));
}

} // namespace shuf

#endif
