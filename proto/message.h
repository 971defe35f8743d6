/* SPDX-License-Identifier: MIT
 *
 * Between bytes and messages: packing with the frame's header in front, and
 * unpacking that cannot be made to allocate more than one arena, because
 * protobuf-c trusts the lengths that it reads.
 */
#ifndef SHUF__MESSAGE_H
#define SHUF__MESSAGE_H

#include "frame.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHUF__PROTOCOL_VERSION = 1,
    /* Room for the structs and strings of any message whose bytes fit a frame;
     * what needs more is hostile and is refused. */
    SHUF__ARENA_SIZE = 2 * SHUF__FRAME_MAX,
};

/* Holds one unpacked message: valid until the arena is used again. */
struct shuf__arena {
    size_t used;
    _Alignas(16) uint8_t bytes[SHUF__ARENA_SIZE];
};

/* NULL when the bytes are not such a message. The result lives in *arena and is
 * not freed. */
const Shuf__Request *shuf__request_unpack(struct shuf__arena *arena, const uint8_t *bytes,
                                          size_t length);
const Shuf__Reply *shuf__reply_unpack(struct shuf__arena *arena, const uint8_t *bytes,
                                      size_t length);

/* Header and message into `out` of `capacity` bytes; the bytes written, or 0
 * when they do not fit or pass SHUF__FRAME_MAX. */
size_t shuf__message_pack(const ProtobufCMessage *message, uint8_t *out, size_t capacity);

#endif
