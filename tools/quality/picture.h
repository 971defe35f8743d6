/* SPDX-License-Identifier: MIT
 *
 * Pictures by gnuplot, from a script that a function writes.
 */
#ifndef SHUF__PICTURE_H
#define SHUF__PICTURE_H

#include <stdio.h>

/* Whether a picture could be written there, looked at before the work for it: 0, or the exit code
 * after a line. */
int shuf__picture_check(const char *path);

/* Writes an SVG. 0, or the exit code after a line; then what was there is as it was. */
int shuf__picture(const char *path, void (*write_script)(FILE *to, const void *context),
                  const void *context);

#endif
