/* SPDX-License-Identifier: MIT
 *
 * Device memory beside the results: the scratch memory of the scan, and workspaces.
 */
#ifndef SHUF__CUDA_SCRATCH_CUH
#define SHUF__CUDA_SCRATCH_CUH

#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

/* The scratch memory of the scan, which is allocated once for all launches. It has the keys.
 * Blocks of results never have them, because clients may read these. */
struct Scratch {
    void *tile_state;      /* cub::ScanTileState of a launch's tiles */
    uint32_t *keys;        /* key words of a launch's rows */
    uint64_t *starts;      /* kept values before each tile of the rank index, and after the last */
    uint64_t *starts_here; /* copy of `starts` in pinned host memory */
    cudaEvent_t launch_done; /* a thread that waits between two launches sleeps for this event */
};

/* Divides a workspace among arrays. Each begins at a multiple of 256 bytes, as the workspace does.
 */
class Workspace
{
  public:
    /* With NULL it computes only bytes(). */
    explicit Workspace(void *memory) : begin(reinterpret_cast<uintptr_t>(memory)), at(begin)
    {
    }

    template <typename Element> Element *take(uint64_t count)
    {
        auto *const array = reinterpret_cast<Element *>(at);
        at += rounded(count * sizeof(Element));
        return array;
    }

    uint64_t bytes() const
    {
        return at - begin;
    }

    static constexpr uint64_t rounded(uint64_t bytes)
    {
        return (bytes + 255) / 256 * 256;
    }

  private:
    uintptr_t begin, at;
};

} // namespace shuf

#endif
