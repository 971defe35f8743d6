/* SPDX-License-Identifier: MIT
 *
 * The public calls that take, prefetch and read a lease of a permutation.
 */
#include "held_lease.h"

#include <inttypes.h>
#include <string.h>

shuf_status shuf_lease_take(shuf *handle, const shuf_permutation *permutation,
                            const shuf_lease_options *lease_options, shuf_lease **lease)
{
    const struct shuf__request_options options = {.permutation = permutation};
    return shuf__take_lease(handle, &options, lease_options, lease);
}

shuf_status shuf_prefetch(shuf *handle, const shuf_permutation *permutation,
                          const shuf_lease_options *lease_options)
{
    const struct shuf__request_options options = {.permutation = permutation};
    return shuf__prefetch(handle, &options, lease_options);
}

static shuf_status check_read(const shuf_lease *lease, uint64_t offset, size_t bytes,
                              struct shuf__error *error)
{
    const uint64_t all = lease->result.shape.bytes;
    if (offset > all || bytes > all - offset)
        return shuf__fail(error, SHUF_INVALID,
                          "offset %" PRIu64 ", bytes %zu: expected to end within the %" PRIu64
                          " bytes of the values",
                          offset, bytes, all);
    if (bytes > 0 && !lease->data)
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a buffer by inline, expected one that is mapped here",
                          lease->id);
    return SHUF_OK;
}

shuf_status shuf_lease_read(shuf *handle, const shuf_lease *lease, uint64_t offset, size_t bytes,
                            void *out)
{
    const struct shuf__mapping *mapping = ((const struct shuf__held_lease *)lease)->mapping;
    if (shuf__handle_check(handle))
        return handle->error.status;
    handle->error = (struct shuf__error){0};
    if (check_read(lease, offset, bytes, &handle->error))
        return handle->error.status;
    if (bytes == 0)
        return SHUF_OK;
    if (mapping && !mapping->host)
        return shuf__gpu_read(&mapping->view, lease->event,
                              (uintptr_t)lease->data - mapping->view.address + offset, bytes, out,
                              &handle->error);
    memcpy(out, (const char *)lease->data + offset, bytes);
    return SHUF_OK;
}
