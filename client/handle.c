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
    return shuf__fail(
        &handle->error, SHUF_INVALID,
        "handle of process %d: expected a call of that process; connect again after fork()",
        (int)handle->process);
}

struct shuf__error shuf__handle_begin_callback(shuf *handle)
{
    handle->in_callback = true;
    return handle->error;
}

void shuf__handle_end_callback(shuf *handle, const struct shuf__error *before)
{
    handle->in_callback = false;
    handle->error = *before;
}

void shuf__handle_observe(shuf *handle, shuf_event event, uint64_t done, uint64_t all)
{
    if (!handle->observer)
        return;
    const struct shuf__error before = shuf__handle_begin_callback(handle);
    handle->observer(handle->observer_context, event, done, all);
    shuf__handle_end_callback(handle, &before);
}
