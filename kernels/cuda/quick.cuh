/* SPDX-License-Identifier: MIT
 *
 * A small computation in a single launch of a single block of threads, which says itself
 * when it is done.
 */
#ifndef SHUF__CUDA_QUICK_CUH
#define SHUF__CUDA_QUICK_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace shuf
{

/* `ticket` is written to `word`, pinned memory of the host, when all values are there. */
struct Signal {
    uint64_t *word;
    uint64_t ticket;
};

#ifdef __CUDACC__
/* By all threads of a block, as their last act. What the others have written is behind the barrier,
 * and so the fence holds for it too. */
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

/* Loads the kernels, which would otherwise be done for the first computation of each form. */
cudaError_t quick_load();

} // namespace shuf

#endif
