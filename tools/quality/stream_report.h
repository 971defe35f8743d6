/* SPDX-License-Identifier: MIT
 *
 * What is told of a stream: a table, an object, a picture, or its bits.
 */
#ifndef SHUF__STREAM_REPORT_H
#define SHUF__STREAM_REPORT_H

#include "stream.h"

#include <stdio.h>

struct shuf__stream_report {
    const struct shuf__stream_origin *origin;
    const struct shuf__stream_law *law;
    struct shuf__findings findings; /* decided */
    struct shuf__stream_outcome outcome;
};

void shuf__stream_table(const struct shuf__stream_report *report, FILE *to);
void shuf__stream_json(const struct shuf__stream_report *report, FILE *to);

/* "gauss, seed 7, stream 0". */
void shuf__stream_origin_text(const struct shuf__stream_origin *origin, char *text, size_t size);

/* How likely a value is in a cell of the histogram; beyond +-z, both sides, what there was. */
double shuf__stream_cell_p(const struct shuf__stream_law *law, unsigned cell);

/* Writes an SVG; the exit code. */
int shuf__stream_draw(const struct shuf__stream_report *report, const char *path);

/* Values as 32 bits each on standard output, until `samples` are written or nobody reads. */
void shuf__stream_bits(const struct shuf__stream_origin *origin, const struct shuf__stream_law *law,
                       uint64_t samples);

#endif
