/* SPDX-License-Identifier: MIT
 *
 * Rows from a file or standard input: raw little-endian words, row after row, in the format of
 * `shufctl permute --epochs 0:S --format raw --out -`.
 */
#include "input.h"
#include "source.h"

#include <inttypes.h>

enum { BUFFER = 8192 };

struct input {
    struct shuf__input bytes;
    uint32_t n;
    bool wide;
};

static shuf_status open_file(void *state, const struct shuf__origin *origin, uint32_t n,
                             struct shuf__error *error)
{
    struct input *in = state;
    in->n = n;
    in->wide = origin->wide;
    return shuf__input_open(&in->bytes, origin->input, error);
}

/* Converts u64 values to u32. A value of 2^32 or more is an error, because it is not below n. `got`
 * is the number of values before these. */
static shuf_status narrow(const struct input *in, const uint64_t *wide, size_t count,
                          uint64_t first, size_t got, uint32_t *values, struct shuf__error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (wide[i] >= in->n)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu64 " at position %zu"
                              ": expected a permutation of 0 to %" PRIu32,
                              first + (got + i) / in->n, wide[i], (got + i) % in->n, in->n - 1);
        values[got + i] = (uint32_t)wide[i];
    }
    return SHUF_OK;
}

static shuf_status read_wide(struct input *in, uint64_t first, uint32_t *values, size_t count,
                             size_t *bytes, struct shuf__error *error)
{
    uint64_t buffer[BUFFER];
    size_t now = 1;
    *bytes = 0;
    for (size_t got = 0; got < count && now != 0; got += now / sizeof *buffer) {
        const size_t size = count - got < BUFFER ? count - got : BUFFER;
        shuf_status status =
            shuf__input_read(&in->bytes, buffer, size * sizeof *buffer, &now, error);
        if (status == SHUF_OK)
            status = narrow(in, buffer, now / sizeof *buffer, first, got, values, error);
        if (status != SHUF_OK)
            return status;
        *bytes += now;
        if (now < size * sizeof *buffer)
            break;
    }
    return SHUF_OK;
}

static shuf_status read_file(void *state, const struct shuf__row_request *request, uint32_t *rows,
                             size_t *count, struct shuf__error *error)
{
    struct input *in = state;
    const unsigned width = in->wide ? 8 : 4;
    const size_t values = request->count * in->n, row = (size_t)in->n * width;
    size_t bytes;
    shuf_status status =
        in->wide ? read_wide(in, request->first, rows, values, &bytes, error)
                 : shuf__input_read(&in->bytes, rows, values * sizeof *rows, &bytes, error);
    if (status != SHUF_OK)
        return status;
    *count = bytes / row;
    if (bytes % row != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "row %" PRIu64 ": ends after %zu byte%s, in value number %zu"
                          ": expected %" PRIu32 " values of %u bytes",
                          request->first + *count, bytes % row, shuf__plural(bytes % row),
                          bytes % row / width, in->n, width);
    return SHUF_OK;
}

static void close_file(void *state)
{
    const struct input *in = state;
    shuf__input_close(&in->bytes);
}

const struct shuf__source_type shuf__source_file = {
    .name = "file",
    .data = true,
    .state = sizeof(struct input),
    .open = open_file,
    .read = read_file,
    .close = close_file,
};
