/* SPDX-License-Identifier: MIT
 *
 * The scratch memory of the scan.
 */
#ifndef SHUF__CUDA_SCRATCH_CUH
#define SHUF__CUDA_SCRATCH_CUH

#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

/* Scratch memory that is allocated once and that all launches share. It has the keys. Blocks of
 * results never have them, because clients may read these. */
struct Scratch {
    void *tile_state;      /* cub::ScanTileState of a launch's tiles */
    uint32_t *keys;        /* key words of a launch's rows */
    uint64_t *starts;      /* kept values before each tile of the rank index, and after the last */
    uint64_t *starts_here; /* copy of `starts` in pinned host memory */
    cudaEvent_t launch_done; /* a thread that waits between two launches sleeps for this event */
};

} // namespace shuf

#endif
