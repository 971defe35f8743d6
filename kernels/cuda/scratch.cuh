/* SPDX-License-Identifier: MIT
 *
 * The memory that launches share.
 */
#ifndef SHUF__CUDA_SCRATCH_CUH
#define SHUF__CUDA_SCRATCH_CUH

#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

/* Device memory that every launch needs besides its output, made once; the
 * keys live here and never in a result's allocation. */
struct Scratch {
    void *tile_state;      /* cub::ScanTileState of a launch's tiles */
    uint32_t *keys;        /* key words of a launch's rows */
    uint64_t *starts;      /* kept values before each tile of the rank index, and after the last */
    uint64_t *starts_here; /* pinned host memory: the same */
    cudaEvent_t launch_done; /* between two launches; who waits for it sleeps */
};

} // namespace shuf

#endif
