/* SPDX-License-Identifier: MIT
 *
 * See mapping_info.h.
 */
#include "mapping_info.h"

#include "connection.h"
#include "transport_set.h"

#include <inttypes.h>
#include <string.h>

static shuf_status check_lease_id(const Shuf__ResultReply *p, bool buffer,
                                  struct shuf__error *error)
{
    bool leased = buffer || p->transport != SHUF__TRANSPORT__TRANSPORT_INLINE;
    const char *name = shuf_transport_name(shuf__transport_of_wire(p->transport));
    if ((p->lease != 0) != leased)
        return shuf__fail(error, SHUF_PROTOCOL, "reply lease %" PRIu64 ": expected %s with %s",
                          p->lease, leased ? "another" : "0", name);
    if (p->descriptor && p->transport != SHUF__TRANSPORT__TRANSPORT_MEMFD &&
        p->transport != SHUF__TRANSPORT__TRANSPORT_CUDA_FD)
        return shuf__fail(error, SHUF_PROTOCOL, "reply with a descriptor: expected none with %s",
                          name);
    return SHUF_OK;
}

/* All values must be inside the block: only the block is mapped. */
static shuf_status check_offset(const Shuf__ResultReply *p, const shuf_shape *shape,
                                struct shuf__error *error)
{
    const uint64_t bytes = shape->bytes;
    if (p->block_bytes == 0 || p->block_bytes > INT64_MAX)
        return shuf__fail(error, SHUF_PROTOCOL, "reply block_bytes %" PRIu64 ": expected 1 to 2^63",
                          p->block_bytes);
    if (p->offset > p->block_bytes || bytes > p->block_bytes - p->offset)
        return shuf__fail(error, SHUF_PROTOCOL,
                          "reply offset %" PRIu64 ": expected %" PRIu64
                          " bytes behind it in a block of %" PRIu64,
                          p->offset, bytes, p->block_bytes);
    if (p->offset % shape->width != 0)
        return shuf__fail(error, SHUF_PROTOCOL,
                          "reply offset %" PRIu64 ": expected a multiple of %" PRIu64, p->offset,
                          shape->width);
    return SHUF_OK;
}

static shuf_status check_handle_size(const char *field, const ProtobufCBinaryData *handle,
                                     struct shuf__error *error)
{
    if (handle->len == SHUF__IPC_BYTES)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply %s of %zu bytes: expected %d", field,
                      handle->len, SHUF__IPC_BYTES);
}

static shuf_status copy_handles(const Shuf__ResultReply *p, struct shuf__mapping_info *info,
                                struct shuf__error *error)
{
    if (check_handle_size("ipc_handle", &p->ipc_handle, error))
        return error->status;
    memcpy(info->ipc, p->ipc_handle.data, sizeof info->ipc);
    info->has_event = p->ipc_event.len > 0;
    if (!info->has_event)
        return SHUF_OK;
    if (check_handle_size("ipc_event", &p->ipc_event, error))
        return error->status;
    memcpy(info->event, p->ipc_event.data, sizeof info->event);
    return SHUF_OK;
}

shuf_status shuf__mapping_info_read(const Shuf__ResultReply *p, unsigned transports,
                                    const shuf_shape *shape, bool buffer,
                                    struct shuf__mapping_info *info, struct shuf__error *error)
{
    bool copied = p->transport == SHUF__TRANSPORT__TRANSPORT_INLINE;
    /* An empty result always comes inline. */
    if (!shuf__transport_in(transports, p->transport) && !(copied && shape->bytes == 0))
        return shuf__fail(error, SHUF_PROTOCOL,
                          "reply transport %d: expected one that was accepted", (int)p->transport);
    if (check_lease_id(p, buffer, error))
        return error->status;
    *info = (struct shuf__mapping_info){.transport = shuf__transport_of_wire(p->transport),
                                        .shared = p->shared,
                                        .writable = buffer};
    if (copied && !buffer)
        return SHUF_OK;
    if (check_offset(p, shape, error))
        return error->status;
    info->lease = p->lease;
    info->block = p->block;
    info->block_bytes = p->block_bytes;
    info->offset = p->offset;
    info->descriptor = p->descriptor;
    if (info->transport >= SHUF_CUDA_FD)
        shuf__copy_string(info->device_id, sizeof info->device_id, p->device_id);
    return info->transport == SHUF_CUDA_IPC ? copy_handles(p, info, error) : SHUF_OK;
}
