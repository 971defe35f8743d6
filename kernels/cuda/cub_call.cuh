/* SPDX-License-Identifier: MIT
 *
 * Calls of CUB. It reports most errors of CUDA by its result, and throws some: the callers in C
 * would end the process.
 */
#ifndef SHUF__CUDA_CUB_CALL_CUH
#define SHUF__CUDA_CUB_CALL_CUH

#include <cuda_runtime.h>
#include <exception>

namespace shuf
{

template <typename Call> cudaError_t guarded(Call call) noexcept
{
    try {
        return call();
    } catch (const std::exception &) {
        const cudaError_t e = cudaPeekAtLastError();
        return e == cudaSuccess ? cudaErrorUnknown : e;
    }
}

} // namespace shuf

#endif
