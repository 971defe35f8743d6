/* SPDX-License-Identifier: MIT
 *
 * Single weights of an array in device memory.
 */
#ifndef SHUF__CUDA_WEIGHTS_OF_CUH
#define SHUF__CUDA_WEIGHTS_OF_CUH

#include "host/weights.h"

namespace shuf
{

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
