/* SPDX-License-Identifier: MIT
 *
 * What a computation works in, kept over many runs of it, as the daemon keeps it: in memory
 * that is new the same work takes longer.
 */
#ifndef SHUF__BENCH_WORKSPACE_CUH
#define SHUF__BENCH_WORKSPACE_CUH

#include "backend.h"
#include "device.cuh"

namespace bench
{

/* Of a computation that fills blocks of that kind; the computation has it as long as this lives. */
class Workspace
{
  public:
    Workspace(shuf__backend *backend, shuf__computation *computation, shuf__memory kind)
        : backend_(backend)
    {
        shuf__error error;
        const shuf__workspace needs = backend->ops->workspace(backend, &computation->request, kind);
        if (shuf__backend_alloc_workspace(backend, &needs, &block_, &error))
            die("workspace", error.text);
        computation->workspace = block_.memory ? &block_ : nullptr;
    }
    ~Workspace()
    {
        backend_->ops->free(backend_, &block_);
    }
    Workspace(const Workspace &) = delete;
    Workspace &operator=(const Workspace &) = delete;

  private:
    shuf__backend *backend_;
    shuf__block block_;
};

} // namespace bench

#endif
