/* SPDX-License-Identifier: MIT
 *
 * A small computation in one launch of one thread block. The kernel itself signals the end.
 */
#ifndef SHUF__CUDA_QUICK_CUH
#define SHUF__CUDA_QUICK_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace shuf
{

/* The kernel writes `ticket` to `word`, in pinned host memory, when all values are complete. */
struct Signal {
    uint64_t *word;
    uint64_t ticket;
};

#ifdef __CUDACC__
/* Called by all threads of a block at their end. The barrier orders the writes of all threads
 * before the fence of thread 0, so the fence covers them too. */
__device__ __forceinline__ void signal_done(const Signal &signal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *static_cast<volatile uint64_t *>(signal.word) = signal.ticket;
    }
}
#endif

/* Queues one row, of at most tuning::tile evaluations; a value has `width` bytes. */
cudaError_t quick_async(const shuf__permutation &p, unsigned width, void *out, Signal signal,
                        cudaStream_t stream);

/* Loads the kernels. Otherwise the first computation of each form would wait for this. */
cudaError_t quick_load();

} // namespace shuf

#endif
