/* SPDX-License-Identifier: MIT
 *
 * Computes the values of a file in this process, without a daemon. A thread computes a part of the
 * values in the cache of its processor, and writes it to its place in the file. So there is one
 * copy of the values, into the memory of the file system, and no page fault.
 */
#ifndef SHUF__RUN_FILE_H
#define SHUF__RUN_FILE_H

#include "output_options.h"

/* True for a regular file with binary values that this process can compute, in any order: not for a
 * named key, moments or a transport, which need a daemon, and not for philox24 and lcg. */
bool shuf__file_needs_no_daemon(const struct shuf__output_options *options);

/* Writes the file and prints the summary. Returns the exit code. Prints one line on failure. */
int shuf__run_file(const struct shuf__output_options *options);

#endif
