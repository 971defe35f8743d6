/* SPDX-License-Identifier: MIT
 *
 * Reports of `rounds` as a picture, by gnuplot.
 */
#ifndef SHUF__DRAW_H
#define SHUF__DRAW_H

#include <jansson.h>

/* Writes an SVG with a panel for each report. 0, or the exit code after a line. */
int shuf__draw(const char *path, json_t *const *reports, unsigned count);

#endif
