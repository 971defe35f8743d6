/* SPDX-License-Identifier: MIT
 *
 * The formats of written values, and the file names that imply them.
 */
#ifndef SHUF__OUTPUT_FORMAT_H
#define SHUF__OUTPUT_FORMAT_H

#include <argp.h>
#include <stdbool.h>

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

#endif
