/* SPDX-License-Identifier: MIT
 *
 * The options that several verbs have: those of the daemon, of an order, and of the output.
 */
#ifndef SHUF__VERB_OPTIONS_H
#define SHUF__VERB_OPTIONS_H

#include "algorithm.h"
#include "shuf.h"

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- The daemon ---- */

/* Every verb has these: the socket, the wait for a daemon, and --json except for `top`. */
struct shuf__daemon_options {
    const char *socket; /* NULL: the default */
    uint64_t wait_ns;   /* for a daemon that does not answer yet */
    bool json;
    bool quiet; /* prints only errors and requested output */
};

/* For the `children` of a verb with more options. Its input is a struct shuf__daemon_options. It
 * rejects arguments that are no options. */
extern const struct argp shuf__daemon_argp;

/* The same without --json. */
extern const struct argp shuf__connection_argp;

/* For a verb without other options. Ends the process as argp does for --help and for a wrong
 * option. */
void shuf__daemon_options(int argc, char **argv, const char *doc,
                          struct shuf__daemon_options *options);

/* ---- The order ---- */

/* --seed or --key selects an order by a number or by the name of a key of the daemon. */

/* Rows for the table of options, after those of other required options: an argp row with group 0
 * takes the group of the row before it, and --key has group 1. */
#define SHUF__SEED_OPTIONS(seed, key)                                                        \
    {"seed", seed, "S", 0, "The seed, any number below 2^64 (required, unless --key)", 0},   \
    {                                                                                        \
        "key", key, "NAME", 0, "A key of the daemon instead of a seed: shufctl help keys", 1 \
    }

/* Ends the process if both options are given. */
void shuf__check_seed_options(struct argp_state *state, bool seed, bool key);

/* The value of --key. */
const char *shuf__key_option(struct argp_state *state, const char *text);

/* The value of --algorithm, whose argument in the help is SHUF__ALGORITHM_CHOICES. Ends the process
 * if it is empty; libshuf checks the name. */
const char *shuf__algorithm_option(struct argp_state *state, const char *text);

/* ---- Formats ---- */

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

/* ---- The output ---- */

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

#endif
