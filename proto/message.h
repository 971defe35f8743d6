/* SPDX-License-Identifier: MIT
 *
 * Packs messages with the frame's header, and unpacks them into an arena. protobuf-c trusts the
 * lengths that it reads. So it may allocate memory only from an arena, which is small.
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
    /* Enough for the structs and strings of every message that libshuf or shufd makes. A message
       that needs more is refused. */
    SHUF__ARENA_SIZE = 2 * SHUF__FRAME_MAX,
};

/* Holds one unpacked message. It is valid until the next use of the arena. */
struct shuf__arena {
    size_t used;
    _Alignas(16) uint8_t bytes[SHUF__ARENA_SIZE];
};

/* Returns NULL if the bytes are not such a message. The result is in *arena; do not free it. */
const Shuf__Request *shuf__request_unpack(struct shuf__arena *arena, const uint8_t *bytes,
                                          size_t length);
const Shuf__Reply *shuf__reply_unpack(struct shuf__arena *arena, const uint8_t *bytes,
                                      size_t length);

/* Writes header and message to `out`, which has `capacity` bytes. Returns the bytes written, or 0
 * if they do not fit or are more than SHUF__FRAME_MAX. */
size_t shuf__message_pack(const ProtobufCMessage *message, uint8_t *out, size_t capacity);

#endif
