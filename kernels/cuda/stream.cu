/* SPDX-License-Identifier: MIT
 *
 * The choice among the distributions of streams on the GPU.
 */
#include "stream.cuh"

namespace shuf
{

cudaError_t stream_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, void *out,
                         const Signal *signal, cudaStream_t stream)
{
    switch (s.distribution) {
    case SHUF_DISTRIBUTION_GAUSS:
        return gauss_async(s, dtype, sm_count, out, signal, stream);
    case SHUF_DISTRIBUTION_UNIFORM:
        return uniform_async(s, dtype, out, signal, stream);
    case SHUF_DISTRIBUTION_BOX_MULLER:
        return box_muller_async(s, dtype, out, signal, stream);
    case SHUF_DISTRIBUTION_EXPONENTIAL:
        return exponential_async(s, dtype, out, signal, stream);
    case SHUF_DISTRIBUTION_BERNOULLI:
        return bernoulli_async(s, dtype, out, signal, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t stream_load()
{
    for (const auto load :
         {gauss_load, uniform_load, box_muller_load, exponential_load, bernoulli_load}) {
        const cudaError_t e = load();
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}

} // namespace shuf
