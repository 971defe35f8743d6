/* SPDX-License-Identifier: MIT
 *
 * The public calls for buffers: memory of the daemon that this process fills.
 */
#include "arguments.h"
#include "call.h"
#include "copy_memory.h"
#include "held_lease.h"
#include "parse.h"

#include <inttypes.h>

static shuf_status read_write_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                    struct shuf__error *error)
{
    (void)trip;
    if (reply->body_case == SHUF__REPLY__BODY_WRITE)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a WriteReply",
                      (int)reply->body_case);
}

static shuf_status send_write(shuf *handle, const struct shuf__held_lease *lease, uint64_t offset,
                              size_t bytes, const void *in)
{
    Shuf__Write write = SHUF__WRITE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    write.lease = lease->public_lease.id;
    write.offset = offset;
    write.data.data = (uint8_t *)(uintptr_t)in; /* only read */
    write.data.len = bytes;
    request.body_case = SHUF__REQUEST__BODY_WRITE;
    request.write = &write;
    struct shuf__round_trip trip = {.request = &request,
                                    .read_reply = read_write_reply,
                                    .generation = lease->generation,
                                    .needs_buffer = true};
    return shuf__call_run(handle, &trip);
}

static shuf_status send_writes(shuf *handle, const struct shuf__held_lease *lease, uint64_t offset,
                               size_t bytes, const char *in)
{
    while (bytes > 0) {
        const size_t size = bytes < SHUF__WRITE_MAX ? bytes : SHUF__WRITE_MAX;
        if (send_write(handle, lease, offset, size, in))
            return handle->error.status;
        offset += size;
        in += size;
        bytes -= size;
    }
    return SHUF_OK;
}

static shuf_status check_write(const struct shuf__held_lease *l, uint64_t offset, size_t bytes,
                               const void *in, struct shuf__error *error)
{
    const shuf_lease *lease = &l->public_lease;
    if (!l->is_buffer)
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a result, expected a buffer to write to", lease->id);
    if (bytes > 0 && !in)
        return shuf__fail(error, SHUF_INVALID, "in NULL: expected %zu byte%s", bytes,
                          shuf__plural(bytes));
    return shuf__write_check(lease->id, offset, bytes, lease->result.shape.bytes, error);
}

shuf_status shuf_lease_write(shuf *handle, const shuf_lease *lease, uint64_t offset, size_t bytes,
                             const void *in)
{
    const struct shuf__held_lease *l = (const struct shuf__held_lease *)lease;
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(lease));
    if (!call)
        return SHUF_INVALID;
    if (shuf__handle_check(handle) || shuf__lease_check(handle, lease) ||
        check_write(l, offset, bytes, in, &handle->error))
        return handle->error.status;
    if (bytes == 0)
        return SHUF_OK;
    if (!l->mapping)
        return send_writes(handle, l, offset, bytes, in);
    if (!l->mapping->host)
        return shuf__gpu_write(&l->mapping->view,
                               (uintptr_t)lease->buffer - l->mapping->view.address + offset, bytes,
                               in, &handle->error);
    return shuf__copy_memory(handle, (char *)lease->buffer + offset, in, bytes);
}
