/* SPDX-License-Identifier: MIT
 *
 * See npy.h, and numpy/lib/format.py: magic, version, a 16-bit length, then a Python dict with
 * blanks as padding, so that the data is aligned.
 */
#include "npy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX = 10, ALIGNMENT = 64 };

static const char *description(const shuf_shape *shape)
{
    switch (shape->dtype) {
    case SHUF_F64:
        return "<f8";
    case SHUF_F32:
        return "<f4";
    case SHUF_F16:
        return "<f2";
    case SHUF_I64:
        return "<i8";
    default:
        assert(shape->dtype != SHUF_BF16);
        return shape->width == 4 ? "<u4" : "<u8";
    }
}

size_t shuf__npy_header(const shuf_shape *shape, bool batch, char out[SHUF__NPY_HEADER_MAX])
{
    char rows[24] = "";
    if (batch)
        snprintf(rows, sizeof rows, "%" PRIu64 ", ", shape->rows);
    int text = snprintf(out + PREFIX, SHUF__NPY_HEADER_MAX - PREFIX,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s%" PRIu64 "%s), }",
                        description(shape), rows, shape->count, batch ? "" : ",");
    size_t used = PREFIX + (size_t)text;
    size_t size = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* 1: the newline */
    assert(size <= SHUF__NPY_HEADER_MAX);
    memset(out + used, ' ', size - used);
    out[size - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((size - PREFIX) & 0xff);
    out[9] = (char)((size - PREFIX) >> 8);
    return size;
}
