/* SPDX-License-Identifier: MIT
 *
 * The first values of a result in one line, for a person at a terminal.
 */
#ifndef SHUF__HEAD_LINE_H
#define SHUF__HEAD_LINE_H

#include "output_options.h"

/* Prints as many values as the terminal behind stdout has room for. Prints nothing if stdout is not
 * a terminal, or if the daemon does not have the values any more. */
void shuf__head_line_print(shuf *daemon, const struct shuf__output_options *options);

#endif
