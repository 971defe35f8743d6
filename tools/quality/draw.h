/* SPDX-License-Identifier: MIT
 *
 * Draws reports of `rounds` with gnuplot.
 */
#ifndef SHUF__DRAW_H
#define SHUF__DRAW_H

#include <jansson.h>

/* Writes an SVG with a panel for each report. Returns 0, or prints a line and returns the exit
 * code. */
int shuf__draw(const char *path, json_t *const *reports, unsigned count);

#endif
