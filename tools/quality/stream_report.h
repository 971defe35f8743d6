/* SPDX-License-Identifier: MIT
 *
 * The output for a stream: a table, a JSON object, a picture, or the bits of its values.
 */
#ifndef SHUF__STREAM_REPORT_H
#define SHUF__STREAM_REPORT_H

#include "stream.h"

#include <stdio.h>

struct shuf__stream_report {
    const struct shuf__stream_origin *origin;
    const struct shuf__stream_law *law;
    struct shuf__findings findings; /* with their verdicts */
    struct shuf__stream_outcome outcome;
};

void shuf__stream_table(const struct shuf__stream_report *report, FILE *to);
void shuf__stream_json(const struct shuf__stream_report *report, FILE *to);

/* Writes a text such as "gauss, seed 7, stream 0". */
void shuf__stream_origin_text(const struct shuf__stream_origin *origin, char *text, size_t size);

/* The expected probability of a cell of the histogram. */
double shuf__stream_cell_p(const struct shuf__stream_law *law, unsigned cell);

/* Writes an SVG. Returns the exit code. */
int shuf__stream_draw(const struct shuf__stream_report *report, const char *path);

#endif
