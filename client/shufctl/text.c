/* SPDX-License-Identifier: MIT
 *
 * See text.h. Digits are made here: printf() would be the slowest part of the
 * way from the device to the file.
 */
#include "text.h"

#include <string.h>

enum { VALUE_MAX = 21 }; /* 20 digits and a separator */

void shuf__text_start(struct shuf__text *text, struct shuf__output *output, const shuf_shape *shape,
                      bool batch)
{
    text->output = output;
    text->width = shape->width;
    text->per_line = batch ? shape->count : 1;
    text->column = 0;
    text->held = 0;
    text->used = 0;
}

bool shuf__text_flush(struct shuf__text *text)
{
    size_t used = text->used;
    text->used = 0;
    return shuf__output_write(text->output, text->buffer, used);
}

static bool write_value(struct shuf__text *text, uint64_t value)
{
    char digits[VALUE_MAX];
    size_t at = sizeof digits;
    if (sizeof text->buffer - text->used < VALUE_MAX && !shuf__text_flush(text))
        return false;
    text->column++;
    digits[--at] = text->column == text->per_line ? '\n' : ' ';
    if (text->column == text->per_line)
        text->column = 0;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    memcpy(text->buffer + text->used, digits + at, sizeof digits - at);
    text->used += sizeof digits - at;
    return true;
}

static bool write_bytes(struct shuf__text *text, const uint8_t *bytes)
{
    uint64_t wide;
    uint32_t narrow;
    if (text->width == sizeof narrow) {
        memcpy(&narrow, bytes, sizeof narrow);
        return write_value(text, narrow);
    }
    memcpy(&wide, bytes, sizeof wide);
    return write_value(text, wide);
}

/* Adds to a value that was cut; how many bytes it took. */
static size_t complete(struct shuf__text *text, const uint8_t *bytes, size_t size)
{
    size_t missing = text->width - text->held;
    size_t taken = size < missing ? size : missing;
    memcpy(text->partial + text->held, bytes, taken);
    text->held += (unsigned)taken;
    return taken;
}

bool shuf__text_write(struct shuf__text *text, const void *bytes, size_t size)
{
    const uint8_t *p = bytes, *end = p + size;
    if (text->held > 0) {
        p += complete(text, p, size);
        if (text->held < text->width)
            return true;
        text->held = 0;
        if (!write_bytes(text, text->partial))
            return false;
    }
    for (; (size_t)(end - p) >= text->width; p += text->width)
        if (!write_bytes(text, p))
            return false;
    if (p < end)
        complete(text, p, (size_t)(end - p));
    return true;
}
