/* SPDX-License-Identifier: MIT
 *
 * See message.h.
 */
#include "message.h"

#include <assert.h>

/* ---- Frames ---- */

enum shuf__frame_result shuf__frame_parse(const uint8_t *bytes, size_t size, size_t *length)
{
    if (size < SHUF__FRAME_HEADER)
        return SHUF__FRAME_PARTIAL;
    *length =
        (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    if (*length == 0 || *length > SHUF__FRAME_MAX)
        return SHUF__FRAME_BAD;
    return size - SHUF__FRAME_HEADER >= *length ? SHUF__FRAME_WHOLE : SHUF__FRAME_PARTIAL;
}

void shuf__frame_header(uint8_t header[SHUF__FRAME_HEADER], size_t length)
{
    assert(length > 0 && length <= SHUF__FRAME_MAX);
    for (int i = 0; i < SHUF__FRAME_HEADER; i++)
        header[i] = (uint8_t)(length >> (8 * i));
}

/* ---- Messages ---- */

static void *arena_alloc(void *data, size_t size)
{
    struct shuf__arena *arena = data;
    size_t start = (arena->used + 15) & ~(size_t)15;
    if (start > SHUF__ARENA_SIZE || size > SHUF__ARENA_SIZE - start)
        return NULL;
    arena->used = start + size;
    return arena->bytes + start;
}

static void arena_free(void *data, void *pointer)
{
    (void)data; /* the next unpacking empties the whole arena */
    (void)pointer;
}

static const void *unpack(struct shuf__arena *arena, const ProtobufCMessageDescriptor *type,
                          const uint8_t *bytes, size_t length)
{
    ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
    arena->used = 0;
    return protobuf_c_message_unpack(type, &allocator, length, bytes);
}

const Shuf__Request *shuf__request_unpack(struct shuf__arena *arena, const uint8_t *bytes,
                                          size_t length)
{
    return unpack(arena, &shuf__request__descriptor, bytes, length);
}

const Shuf__Reply *shuf__reply_unpack(struct shuf__arena *arena, const uint8_t *bytes,
                                      size_t length)
{
    return unpack(arena, &shuf__reply__descriptor, bytes, length);
}

size_t shuf__message_pack(const ProtobufCMessage *message, uint8_t *out, size_t capacity)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    if (length == 0 || length > SHUF__FRAME_MAX || length > capacity ||
        capacity - length < SHUF__FRAME_HEADER)
        return 0;
    shuf__frame_header(out, length);
    return SHUF__FRAME_HEADER + protobuf_c_message_pack(message, out + SHUF__FRAME_HEADER);
}
