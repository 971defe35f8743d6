/* SPDX-License-Identifier: MIT
 *
 * See frame.h. Shifts make the length, because it is little-endian on every host.
 */
#include "frame.h"

#include <assert.h>

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
