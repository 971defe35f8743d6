/* SPDX-License-Identifier: MIT
 *
 * See value_file.h.
 */
#include "value_file.h"

#include "npy.h"
#include "progress.h"

#include <sysexits.h>
#include <unistd.h>

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
