/* SPDX-License-Identifier: MIT
 *
 * See handle.h.
 */
#include "handle.h"

#include <unistd.h>

bool shuf__handle_is_ours(const shuf *handle)
{
    return handle->process == getpid();
}

shuf_status shuf__handle_check(shuf *handle)
{
    if (shuf__handle_is_ours(handle))
        return SHUF_OK;
    return shuf__fail(&handle->error, SHUF_INVALID,
                      "handle of process %d: expected to be used there; connect anew after fork()",
                      (int)handle->process);
}

void shuf__handle_observe(const shuf *handle, shuf_event event, uint64_t done, uint64_t all)
{
    if (handle->observer)
        handle->observer(handle->observer_context, event, done, all);
}
