/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl permute`, read and checked.
 */
#ifndef SHUF__PERMUTE_OPTIONS_H
#define SHUF__PERMUTE_OPTIONS_H

#include "daemon_options.h"
#include "shuf.h"

enum shuf__format { SHUF__FORMAT_RAW, SHUF__FORMAT_NPY, SHUF__FORMAT_TEXT };

struct shuf__permute_options {
    shuf_permutation what; /* complete: the library will not refuse it */
    shuf_shape shape;
    bool batch;      /* --epochs: rows are a dimension, even a single one */
    const char *out; /* NULL: only a summary */
    enum shuf__format format;
    shuf_transport transport; /* 0: the values are sent, or stay where they are */
    bool prefetch;
    struct shuf__daemon_options daemon;
};

/* Ends the process as argp does: 0 after --help, 64 with one line when wrong. */
void shuf__permute_options(int argc, char **argv, struct shuf__permute_options *options);

/* "raw", "npy", "text". */
const char *shuf__format_name(enum shuf__format format);

/* "u32", "u64", "i64". */
const char *shuf__shape_dtype(const shuf_shape *shape);

#endif
