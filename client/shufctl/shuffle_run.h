/* SPDX-License-Identifier: MIT
 *
 * A shuffle of `shufctl shuffle`, and the two ways to carry it out.
 */
#ifndef SHUF__SHUFFLE_RUN_H
#define SHUF__SHUFFLE_RUN_H

#include "array.h"
#include "output.h"
#include "shuffle_options.h"

struct shuf__shuffle_run {
    const struct shuf__shuffle_options *options;
    struct shuf__array array;
    struct shuf__output output;
    shuf_records records; /* of the options, with the size of the array */
    shuf_result result;
};

/* Both write the shuffled records behind the header. They return EX_OK, or print one line and
 * return the exit code. The output is not committed yet. */

/* In the daemon's memory, which holds the array and the shuffled copy. If the daemon has no room
 * for them, it sets *too_large, writes nothing and prints no line. */
int shuf__shuffle_in_daemon(shuf *daemon, struct shuf__shuffle_run *run, bool *too_large);

/* In this process: the daemon computes the permutation, and the input is a mapped file. */
int shuf__shuffle_mapped(shuf *daemon, struct shuf__shuffle_run *run);

/* Reserves space for the whole output, then writes the header. */
int shuf__shuffle_begin_output(struct shuf__shuffle_run *run);

#endif
