/* SPDX-License-Identifier: MIT
 *
 * What shufctl prints about a result: a description of its request and a summary, as lines for
 * people or as JSON. If the request leaves a field to the daemon, such as the algorithm, the
 * description takes it from the result.
 */
#ifndef SHUF__SUMMARY_H
#define SHUF__SUMMARY_H

#include "shuf.h"
#include "verb_options.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct shuf__summary {
    const struct shuf__output_options *options;
    const shuf_result *result;
    const shuf_lease *lease; /* NULL: no lease was taken. Its data is not read */
    uint64_t seen_ns;        /* duration of the call, measured by this process */
};

/* Prints the summary that the options ask for. Without a daemon (NULL) it has no head line. Returns
 * the exit code. */
int shuf__print_summary(shuf *daemon, const struct shuf__summary *summary);

/* Returns EX_OK, or prints one line and returns the exit code if a summary could not be written to
 * standard error. main() checks standard output. */
int shuf__check_error_stream(void);

/* ---- Parts of descriptions ---- */

/* Prints one line: the key, then the formatted text. */
void shuf__print_line(FILE *to, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of the distribution; "-" for an unknown one. */
const char *shuf__distribution_text(shuf_distribution distribution);

/* Indexed by shuf_method; NULL ends the list. */
extern const char *const shuf__method_names[];

/* "table", "box-muller"; "-" for an unknown one. */
const char *shuf__method_text(shuf_method method);

/* "u32"; "-" for an unknown type. */
const char *shuf__dtype_text(shuf_dtype dtype);

enum { SHUF__SEED_TEXT = 48 };

/* "seed 7", or "key training" if `key` is neither NULL nor "". */
const char *shuf__seed_text(char text[SHUF__SEED_TEXT], const char *key, uint64_t seed);

/* A line "seed 7" or "key training". */
void shuf__print_seed(FILE *to, const char *key, uint64_t seed);

/* The field "seed" or "key". */
void shuf__json_seed(json_t *object, const char *key, uint64_t seed);

/* The fields "chunk" and "window", if the order has windows. */
void shuf__json_windows(json_t *object, const shuf_permutation *permutation);

#endif
