/* SPDX-License-Identifier: MIT
 *
 * Rows from a file or standard input: raw little-endian words, row after row, as
 * `shufctl permute --epochs 0:S --format raw --out -` writes them.
 */
#include "source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER = 8192 };

struct input {
    FILE *file;
    const char *name;
    uint32_t n;
    bool wide;
};

static shuf_status open_file(void *state, const struct shuf__origin *origin, uint32_t n,
                             struct shuf__error *error)
{
    struct input *in = state;
    const bool standard = strcmp(origin->input, "-") == 0;
    in->name = standard ? "standard input" : origin->input;
    in->file = standard ? stdin : fopen(origin->input, "rbe");
    in->n = n;
    in->wide = origin->wide;
    if (!in->file)
        return shuf__fail(error, SHUF_IO, "--in %.128s: %s", origin->input, strerror(errno));
    return SHUF_OK;
}

/* u64, each below 2^32 or it could not be below n. */
static shuf_status read_wide(struct input *in, uint64_t first, uint32_t *values, size_t wanted,
                             size_t *bytes, struct shuf__error *error)
{
    uint64_t buffer[BUFFER];
    size_t got = 0, now, ask;
    *bytes = 0;
    do {
        ask = wanted - got < BUFFER ? wanted - got : BUFFER;
        now = fread(buffer, 1, ask * sizeof *buffer, in->file);
        *bytes += now;
        for (size_t i = 0; i < now / sizeof *buffer; i++, got++) {
            if (buffer[i] >= in->n)
                return shuf__fail(error, SHUF_INVALID,
                                  "row %" PRIu64 ": value %" PRIu64 " at position %zu"
                                  ": expected a permutation of 0 to %" PRIu32,
                                  first + got / in->n, buffer[i], got % in->n, in->n - 1);
            values[got] = (uint32_t)buffer[i];
        }
    } while (now == ask * sizeof *buffer && got < wanted);
    return SHUF_OK;
}

static shuf_status check_end(const struct input *in, uint64_t row, size_t rest,
                             struct shuf__error *error)
{
    const unsigned width = in->wide ? 8 : 4;
    if (ferror(in->file) && errno == EINTR)
        return shuf__fail(error, SHUF_CANCELLED, "%.128s: interrupted", in->name);
    if (ferror(in->file))
        return shuf__fail(error, SHUF_IO, "%.128s: %s", in->name, strerror(errno));
    if (rest != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "row %" PRIu64 ": ends after %zu bytes, in value number %zu"
                          ": expected %" PRIu32 " values of %u bytes",
                          row, rest, rest / width, in->n, width);
    return SHUF_OK;
}

static shuf_status read_file(void *state, const struct shuf__ask *ask, uint32_t *rows,
                             size_t *count, struct shuf__error *error)
{
    struct input *in = state;
    const size_t wanted = ask->count * in->n, row = (size_t)in->n * (in->wide ? 8 : 4);
    size_t bytes;
    shuf_status status = SHUF_OK;
    if (in->wide)
        status = read_wide(in, ask->first, rows, wanted, &bytes, error);
    else
        bytes = fread(rows, 1, wanted * sizeof *rows, in->file);
    *count = bytes / row;
    return status == SHUF_OK ? check_end(in, ask->first + *count, bytes % row, error) : status;
}

static void close_file(void *state)
{
    struct input *in = state;
    if (in->file && in->file != stdin)
        fclose(in->file);
}

const struct shuf__source_type shuf__source_file = {
    .name = "file",
    .state = sizeof(struct input),
    .open = open_file,
    .read = read_file,
    .close = close_file,
};
