/* SPDX-License-Identifier: MIT
 *
 * Runs the request of a verb, and writes the values to a file, or prints a summary. A daemon
 * computes the result, which arrives as a copy or by a lease. This process computes a file that
 * needs no daemon.
 */
#ifndef SHUF__RUN_REQUEST_H
#define SHUF__RUN_REQUEST_H

#include "verb_options.h"

/* Returns the exit code. Prints one line on failure. */
int shuf__run_request(const struct shuf__output_options *options);

#endif
