/* SPDX-License-Identifier: MIT
 *
 * The options of every verb that has values: the request and its output, parsed and checked.
 */
#ifndef SHUF__OUTPUT_OPTIONS_H
#define SHUF__OUTPUT_OPTIONS_H

#include "daemon_options.h"
#include "shuf.h"

#include <argp.h>
#include <stdbool.h>

/* ---- formats ---- */

enum shuf__format {
    SHUF__FORMAT_RAW,
    SHUF__FORMAT_NPY,
    SHUF__FORMAT_TEXT, /* the values of a row, separated by blanks */
    SHUF__FORMAT_CSV,  /* or by commas */
};

#define SHUF__FORMAT_VALUES "npy|raw|text|csv"
#define SHUF__FORMAT_HELP                                                                      \
    "By default the suffix of FILE selects it: .npy, .raw, .bin, .txt or .csv; raw is in the " \
    "host's byte order"

/* "raw", "npy", "text", "csv". */
const char *shuf__format_name(enum shuf__format format);

bool shuf__format_is_text(enum shuf__format format);

/* The value of --format. Ends the process as argp does for an unknown one. */
enum shuf__format shuf__format_option(struct argp_state *state, const char *text);

/* The format of the file `out` without --format. `otherwise` is the format for standard output,
 * pipes and devices; terminals get text. Ends the process as argp does for an unknown suffix. */
enum shuf__format shuf__format_of_file(struct argp_state *state, const char *out,
                                       enum shuf__format otherwise);

/* The suffix of the path with its dot, ".npy"; "" for none. */
const char *shuf__suffix(const char *path);

/* ---- the options ---- */

struct shuf__chunk_list; /* chunk_list.h */

struct shuf__output_options {
    const shuf_request *request; /* a valid PERMUTATION or NUMBERS */
    shuf_shape shape;
    bool is_empty_rest; /* the permutation is a shard that stands for a slice from n on */
    bool batch;         /* the output has a dimension for rows, even for a single row */
    const char *out;    /* NULL: print only a summary */
    enum shuf__format format;
    bool format_given;
    shuf_transport transport; /* 0: take no lease */
    bool prefetch;
    struct shuf__chunk_list *chunks; /* of --chunks, with the order of the first row; else NULL */
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

static inline bool shuf__wants_moments(const shuf_request *request)
{
    return request->kind == SHUF_NUMBERS && request->numbers.moments;
}

/* "u32"; "-" for an unknown type. */
const char *shuf__dtype_text(shuf_dtype dtype);

#endif
