/* SPDX-License-Identifier: MIT
 *
 * The options of every verb that has values: the request and its output, parsed and checked.
 */
#ifndef SHUF__OUTPUT_OPTIONS_H
#define SHUF__OUTPUT_OPTIONS_H

#include "daemon_options.h"
#include "output_format.h"
#include "shuf.h"

struct shuf__output_options {
    const shuf_permutation *permutation; /* one of these; valid */
    const shuf_numbers *numbers;
    shuf_shape shape;
    bool is_empty_rest; /* the permutation is a shard that stands for a slice from n on */
    bool batch;         /* the output has a dimension for rows, even for a single row */
    const char *out;    /* NULL: print only a summary */
    enum shuf__format format;
    bool format_given;
    shuf_transport transport; /* 0: take no lease */
    bool prefetch;
    struct shuf__daemon_options daemon;
};

/* For the `children` of a verb; its input is a struct shuf__output_options. */
extern const struct argp shuf__output_argp;

/* Call it after the last option, when the request and its shape are set. Rejects options that
 * exclude each other, and sets the default format. Ends the process as argp does. */
void shuf__output_options_complete(struct argp_state *state, struct shuf__output_options *options);

/* Ends the process if `out` is empty. */
void shuf__check_out_option(struct argp_state *state, const char *out);

/* True when the values go to standard output, so the summary cannot. */
bool shuf__writes_to_stdout(const struct shuf__output_options *options);

/* "u32"; "-" for an unknown type. */
const char *shuf__dtype_text(shuf_dtype dtype);

#endif
