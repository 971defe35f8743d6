/* SPDX-License-Identifier: MIT
 *
 * The public call that reads a lease.
 */
#include "arguments.h"
#include "copy_memory.h"
#include "held_lease.h"

#include <inttypes.h>

static shuf_status check_read(const shuf_lease *lease, uint64_t offset, size_t bytes,
                              const void *out, struct shuf__error *error)
{
    const uint64_t all = lease->result.shape.bytes;
    if (offset > all || bytes > all - offset)
        return shuf__fail(error, SHUF_INVALID,
                          "offset %" PRIu64 ", bytes %zu: expected to end within the %" PRIu64
                          " byte%s of the values",
                          offset, bytes, all, shuf__plural(all));
    if (bytes > 0 && !out)
        return shuf__fail(error, SHUF_INVALID, "out NULL: expected %zu byte%s", bytes,
                          shuf__plural(bytes));
    if (bytes > 0 && !lease->data)
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a buffer by inline, expected one that is mapped here",
                          lease->id);
    return SHUF_OK;
}

shuf_status shuf_lease_read(shuf *handle, const shuf_lease *lease, uint64_t offset, size_t bytes,
                            void *out)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(lease));
    if (!call)
        return SHUF_INVALID;
    if (shuf__handle_check(handle) || shuf__lease_check(handle, lease) ||
        check_read(lease, offset, bytes, out, &handle->error))
        return handle->error.status;
    const struct shuf__mapping *mapping = ((const struct shuf__held_lease *)lease)->mapping;
    if (bytes == 0)
        return SHUF_OK;
    if (mapping && !mapping->host)
        return shuf__gpu_read(&mapping->view, lease->event,
                              (uintptr_t)lease->data - mapping->view.address + offset, bytes, out,
                              &handle->error);
    return shuf__copy_memory(handle, out, (const char *)lease->data + offset, bytes);
}
