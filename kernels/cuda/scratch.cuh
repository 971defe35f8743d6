/* SPDX-License-Identifier: MIT
 *
 * The scratch memory that all launches share.
 */
#ifndef SHUF__CUDA_SCRATCH_CUH
#define SHUF__CUDA_SCRATCH_CUH

#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

/* Scratch memory that every launch needs, allocated once. Keys are only in this memory, never in
 * the allocation of a result. */
struct Scratch {
    void *tile_state;      /* cub::ScanTileState of a launch's tiles */
    uint32_t *keys;        /* key words of a launch's rows */
    uint64_t *starts;      /* kept values before each tile of the rank index, and after the last */
    uint64_t *starts_here; /* copy of `starts` in pinned host memory */
    cudaEvent_t launch_done; /* between two launches; the waiting thread sleeps */
};

} // namespace shuf

#endif
