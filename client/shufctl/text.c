/* SPDX-License-Identifier: MIT
 *
 * See text.h.
 */
#include "text.h"

#include "format_value.h"

#include <string.h>

void shuf__text_start(struct shuf__text *text, struct shuf__output *output, const shuf_shape *shape,
                      bool batch, char separator)
{
    text->separator = separator;
    text->output = output;
    text->dtype = shape->dtype;
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

static bool write_value(struct shuf__text *text, uint64_t bits)
{
    if (sizeof text->buffer - text->used < SHUF__VALUE_TEXT && !shuf__text_flush(text))
        return false;
    text->used += shuf__value_text(text->dtype, bits, text->buffer + text->used);
    text->column++;
    text->buffer[text->used++] = text->column == text->per_line ? '\n' : text->separator;
    if (text->column == text->per_line)
        text->column = 0;
    return true;
}

static bool write_bytes(struct shuf__text *text, const uint8_t *bytes)
{
    uint64_t wide;
    uint32_t narrow;
    uint16_t half;
    switch (text->width) {
    case sizeof half:
        memcpy(&half, bytes, sizeof half);
        return write_value(text, half);
    case sizeof narrow:
        memcpy(&narrow, bytes, sizeof narrow);
        return write_value(text, narrow);
    default:
        memcpy(&wide, bytes, sizeof wide);
        return write_value(text, wide);
    }
}

/* Adds bytes to an incomplete value. Returns the number of bytes used. */
static size_t complete_value(struct shuf__text *text, const uint8_t *bytes, size_t size)
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
        p += complete_value(text, p, size);
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
        complete_value(text, p, (size_t)(end - p));
    return true;
}
