/* SPDX-License-Identifier: MIT
 *
 * Pictures by gnuplot. The caller passes a function that writes the script.
 */
#ifndef SHUF__PICTURE_H
#define SHUF__PICTURE_H

#include <jansson.h>
#include <stdio.h>

/* Checks before a run whether a picture can be written. Returns 0, or prints a line and returns the
 * exit code. */
int shuf__picture_check(const char *path);

/* Writes an SVG and returns 0. On a failure it prints a line, leaves an old file as it is, and
 * returns the exit code. */
int shuf__picture(const char *path, void (*write_script)(FILE *to, const void *context),
                  const void *context);

/* Writes an SVG with a panel for each report. Returns 0, or prints a line and returns the exit
 * code. */
int shuf__draw(const char *path, json_t *const *reports, unsigned count);

/* Draws the histogram and the tails of a stream. Returns the exit code. */
struct shuf__stream_report;
int shuf__stream_draw(const struct shuf__stream_report *report, const char *path);

#endif
