/* SPDX-License-Identifier: MIT
 *
 * Writes the values of a result to the file of --out, in any format and in parts, and shows the
 * progress.
 */
#ifndef SHUF__VALUE_FILE_H
#define SHUF__VALUE_FILE_H

#include "output.h"
#include "shuf.h"
#include "verb_options.h"

/* ---- Text ---- */

/* Values as text: one value a line, or one row a line separated by blanks or commas. */

enum { SHUF__TEXT_BUFFER = 64 * 1024 };

struct shuf__text {
    struct shuf__output *output;
    shuf_dtype dtype;
    unsigned width;    /* bytes of a value */
    uint64_t per_line; /* values */
    uint64_t column;   /* of the next value */
    char separator;    /* between the values of a line */
    unsigned held;     /* bytes of an incomplete value */
    uint8_t partial[8];
    size_t used;
    char buffer[SHUF__TEXT_BUFFER];
};

/* A line has one row of a batch or, without a batch, one value. */
void shuf__text_start(struct shuf__text *text, struct shuf__output *output, const shuf_shape *shape,
                      bool batch, char separator);

/* Writes the next bytes of the values, which may end inside a value. False when writing failed. */
bool shuf__text_write(struct shuf__text *text, const void *bytes, size_t size);
bool shuf__text_flush(struct shuf__text *text);

/* ---- The file ---- */

struct shuf__value_file {
    struct shuf__output output;
    enum shuf__format format;
    struct shuf__text text;
    uint64_t bytes; /* of all values */
    uint64_t head;  /* bytes before the values */
    bool begun;     /* the first values have arrived */
};

/* Opens the file `out`, and reserves room for the values of `shape`. With `batch`, they have a
 * dimension for rows. Returns EX_OK, or prints one line and returns the exit code. */
int shuf__value_file_open(struct shuf__value_file *file, const char *out, enum shuf__format format,
                          const shuf_shape *shape, bool batch);

/* A shuf_sink: writes the next bytes of the values, and begins the phase "writing". `file` is the
 * value file. False when writing failed; then call shuf__output_failed(). */
bool shuf__value_file_write(void *file, const void *bytes, size_t size);

/* Writes bytes of the values that begin at `offset` in them, not as text and not to a pipe. Several
 * threads may call it. Returns 0 or errno. */
int shuf__value_file_write_at(struct shuf__value_file *file, uint64_t offset, const void *bytes,
                              size_t size);

/* Writes the rest, and gives the file its name. Returns EX_OK, or prints one line and returns the
 * exit code. */
int shuf__value_file_commit(struct shuf__value_file *file);

/* A file that was not committed is deleted. */
void shuf__value_file_close(struct shuf__value_file *file);

#endif
