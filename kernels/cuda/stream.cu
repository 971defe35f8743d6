/* SPDX-License-Identifier: MIT
 *
 * The choice among the distributions of streams on the GPU.
 */
#include "stream.cuh"

namespace shuf
{

cudaError_t stream_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                         cudaStream_t stream)
{
    switch (s.distribution) {
#define SHUF__ROW(NAME, name)      \
    case SHUF_DISTRIBUTION_##NAME: \
        return name##_async(s, dtype, sm_count, to, stream);
        SHUF__STREAM_KERNELS(SHUF__ROW)
#undef SHUF__ROW
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t stream_load()
{
    cudaError_t e = cudaSuccess;
#define SHUF__ROW(NAME, name) \
    if (e == cudaSuccess)     \
        e = name##_load();
    SHUF__STREAM_KERNELS(SHUF__ROW)
#undef SHUF__ROW
    return e;
}

} // namespace shuf
