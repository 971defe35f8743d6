/* SPDX-License-Identifier: MIT
 *
 * The bytes of a connection: frames, the messages in them, and the kinds of requests. Packs
 * messages with the frame's header, and unpacks them into an arena. protobuf-c trusts the lengths
 * that it reads. So it may allocate memory only from an arena, which is small.
 */
#ifndef SHUF__MESSAGE_H
#define SHUF__MESSAGE_H

#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Frames ---- */

/* A frame is a 4-byte little-endian length, then one protobuf message of that many bytes. These
 * are pure functions over bytes, without I/O; daemon, client and fuzzer share them. */

enum {
    SHUF__FRAME_HEADER = 4,
    SHUF__FRAME_MAX = 64 * 1024, /* most bytes of one message; values follow as a payload */
};

enum shuf__frame_result {
    SHUF__FRAME_WHOLE,   /* *length holds the message's bytes */
    SHUF__FRAME_PARTIAL, /* more bytes are needed */
    SHUF__FRAME_BAD,     /* length is 0 or over SHUF__FRAME_MAX (in *length) */
};

/* Looks at the front of a byte stream. On WHOLE the message is
 * bytes[SHUF__FRAME_HEADER .. SHUF__FRAME_HEADER + *length). */
enum shuf__frame_result shuf__frame_parse(const uint8_t *bytes, size_t size, size_t *length);

/* Writes the header for a message of `length` bytes, 1..SHUF__FRAME_MAX. */
void shuf__frame_header(uint8_t header[SHUF__FRAME_HEADER], size_t length);

/* ---- Messages ---- */

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

/* ---- The kinds of requests ---- */

/* The number of a kind is the enumerator SHUF__REQUEST__BODY_NAME or, for a request for a result,
 * SHUF__RESULT__WHAT_NAME. The rows are X(NAME, name). */
#define SHUF__OTHER_KINDS(X) \
    X(HELLO, hello)          \
    X(STATUS, status)        \
    X(RELEASE, release)      \
    X(LEASES, leases)        \
    X(INDEX, index)          \
    X(WRITE, write)          \
    X(DROP, drop)            \
    X(METRICS, metrics)

#define SHUF__RESULT_KINDS(X) \
    X(PERMUTE, permute)       \
    X(STREAM, stream)         \
    X(SHUFFLE, shuffle)       \
    X(EXCHANGE, exchange)     \
    X(BUFFER, buffer)

/* All kinds have smaller numbers. 0 stands for a frame without a known kind. */
enum { SHUF__REQUEST_KIND_MAX = 24 };

/* The number of the kind; 0: a result of an unknown kind. */
static inline unsigned shuf__request_kind(const Shuf__Request *request)
{
    return request->body_case == SHUF__REQUEST__BODY_RESULT ? (unsigned)request->result->what_case
                                                            : (unsigned)request->body_case;
}

#endif
