/* SPDX-License-Identifier: MIT
 *
 * A workspace that many runs of a computation share, as in the daemon. The same work takes longer
 * in new memory.
 */
#ifndef SHUF__BENCH_WORKSPACE_CUH
#define SHUF__BENCH_WORKSPACE_CUH

#include "backend.h"
#include "device.cuh"

namespace bench
{

/* The workspace of a computation that fills blocks of that kind, for the lifetime of this
 * object. */
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
