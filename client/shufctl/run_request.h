/* SPDX-License-Identifier: MIT
 *
 * Runs the request of a verb, as a copy or by a lease. Writes the values to a file, or prints a
 * summary.
 */
#ifndef SHUF__RUN_REQUEST_H
#define SHUF__RUN_REQUEST_H

#include "output_options.h"

/* Returns the exit code. Prints one line on failure. */
int shuf__run_request(const struct shuf__output_options *options);

#endif
