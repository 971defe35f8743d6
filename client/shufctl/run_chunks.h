/* SPDX-License-Identifier: MIT
 *
 * Runs a permutation of --chunks, which this process computes in parts. Writes the values to a
 * file, or prints a summary, as run_request.h does for the others.
 */
#ifndef SHUF__RUN_CHUNKS_H
#define SHUF__RUN_CHUNKS_H

#include "output_options.h"

/* Returns the exit code. Prints one line on failure. */
int shuf__run_chunks(const struct shuf__output_options *options);

#endif
