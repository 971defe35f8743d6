/* SPDX-License-Identifier: MIT
 *
 * A small computation: one launch of one thread block. The kernel itself signals its end.
 */
#ifndef SHUF__CUDA_QUICK_CUH
#define SHUF__CUDA_QUICK_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace shuf
{

/* When all values are complete, the kernel writes `ticket` to `word`, in pinned host memory. */
struct Signal {
    uint64_t *word;
    uint64_t ticket;
};

#ifdef __CUDACC__
/* Gives the signal. All threads of the block call this at their end. The barrier puts the writes of
 * all threads before the fence of thread 0, so the host sees these writes before the ticket. */
__device__ __forceinline__ void signal_done(const Signal &signal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *static_cast<volatile uint64_t *>(signal.word) = signal.ticket;
    }
}
#endif

/* Queues a row of at most tuning::tile evaluations. A value has `width` bytes. */
cudaError_t quick_async(const shuf__permutation &p, unsigned width, void *out, Signal signal,
                        cudaStream_t stream);

/* Loads the kernels in advance. Otherwise the first computation with each kernel would wait for its
 * loading. */
cudaError_t quick_load();

} // namespace shuf

#endif
