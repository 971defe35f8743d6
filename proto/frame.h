/* SPDX-License-Identifier: MIT
 *
 * Framing: a 4-byte little-endian length, then one protobuf message of that many bytes. Pure
 * functions over bytes, without I/O; daemon, client and fuzzer share them.
 */
#ifndef SHUF__FRAME_H
#define SHUF__FRAME_H

#include <stddef.h>
#include <stdint.h>

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

#endif
