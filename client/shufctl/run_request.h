/* SPDX-License-Identifier: MIT
 *
 * Runs the request of a verb: writes the values to a file or prints a summary, by a copy or by a
 * lease.
 */
#ifndef SHUF__RUN_REQUEST_H
#define SHUF__RUN_REQUEST_H

#include "output_options.h"

/* Returns the exit code. Prints one line on failure. */
int shuf__run_request(const struct shuf__output_options *options);

#endif
