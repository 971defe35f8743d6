/* SPDX-License-Identifier: MIT
 *
 * See value_file.h.
 */
#include "value_file.h"

#include "format_value.h"
#include "npy.h"
#include "progress.h"

#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Text ---- */

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

/* ---- The file ---- */

static int begin_values(struct shuf__value_file *file, const shuf_shape *shape, bool batch)
{
    char header[SHUF__NPY_HEADER_MAX];
    size_t head = 0;
    file->head = 0;
    if (isatty(file->output.fd))
        shuf__progress_hide();
    if (shuf__format_is_text(file->format)) {
        shuf__text_start(&file->text, &file->output, shape, batch,
                         file->format == SHUF__FORMAT_CSV ? ',' : ' ');
        return EX_OK; /* the size of the text is not known yet */
    }
    if (file->format == SHUF__FORMAT_NPY)
        file->head = head = shuf__npy_header(shape, batch, header);
    int code = shuf__output_reserve(&file->output, head + shape->bytes);
    if (code == EX_OK && !shuf__output_write(&file->output, header, head))
        code = shuf__output_failed(&file->output);
    return code;
}

int shuf__value_file_open(struct shuf__value_file *file, const char *out, enum shuf__format format,
                          const shuf_shape *shape, bool batch)
{
    file->format = format;
    file->bytes = shape->bytes;
    file->begun = false;
    int code = shuf__output_open(&file->output, out, !shuf__format_is_text(format));
    if (code != EX_OK)
        return code;
    code = begin_values(file, shape, batch);
    if (code != EX_OK)
        shuf__output_close(&file->output);
    return code;
}

bool shuf__value_file_write(void *context, const void *bytes, size_t size)
{
    struct shuf__value_file *file = context;
    if (!file->begun)
        shuf__progress_phase("writing", file->bytes);
    file->begun = true;
    const bool written = shuf__format_is_text(file->format)
                             ? shuf__text_write(&file->text, bytes, size)
                             : shuf__output_write(&file->output, bytes, size);
    shuf__progress_add(size);
    return written;
}

int shuf__value_file_write_at(struct shuf__value_file *file, uint64_t offset, const void *bytes,
                              size_t size)
{
    const int cause = shuf__output_write_at(&file->output, file->head + offset, bytes, size);
    shuf__progress_add(size);
    return cause;
}

int shuf__value_file_commit(struct shuf__value_file *file)
{
    if (shuf__format_is_text(file->format) && !shuf__text_flush(&file->text))
        return shuf__output_failed(&file->output);
    shuf__progress_phase("waiting for the disk", 0);
    return shuf__output_commit(&file->output);
}

void shuf__value_file_close(struct shuf__value_file *file)
{
    shuf__output_close(&file->output);
}
