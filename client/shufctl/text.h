/* SPDX-License-Identifier: MIT
 *
 * Values as text: one value a line, or one row a line separated by blanks.
 */
#ifndef SHUF__TEXT_H
#define SHUF__TEXT_H

#include "output.h"
#include "shuf.h"

enum { SHUF__TEXT_BUFFER = 64 * 1024 };

struct shuf__text {
    struct shuf__output *output;
    shuf_dtype dtype;
    unsigned width;    /* bytes of a value */
    uint64_t per_line; /* values */
    uint64_t column;   /* of the next value */
    char separator;    /* the number of values in a line */
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

#endif
