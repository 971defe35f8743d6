/* SPDX-License-Identifier: MIT
 *
 * Parsers of option values. They end the process on a wrong value as argp does: one line on stderr
 * and exit code 64.
 */
#ifndef SHUF__OPTION_VALUES_H
#define SHUF__OPTION_VALUES_H

#include "dtype.h"
#include "option_parse.h"

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row for the table of options: -h does the same as --help. */
#define SHUF__OPTION_HELP                              \
    {                                                  \
        NULL, 'h', NULL, OPTION_HIDDEN, "As --help", 0 \
    }

/* Call it at the end of a parser. It handles -h, and refuses arguments that are not options.
 * Returns ARGP_ERR_UNKNOWN for any other key. */
error_t shuf__option_common(int key, const char *text, struct argp_state *state);

/* "--count": the name of the option `key` in a table that ends with {0}. Valid until the next call.
 */
const char *shuf__option_name(const struct argp_option *table, int key);

/* A number below 2^64, in any of the notations of shuf__number_parse(). */
void shuf__option_number(struct argp_state *state, const char *field, const char *text,
                         uint64_t *value);

/* The same for a number from `least` to `most`. */
void shuf__option_number_in(struct argp_state *state, const char *field, const char *text,
                            uint64_t least, uint64_t most, uint64_t *value);

/* Calls `take` for each word of a list, which has commas between them, as `example` has. Changes
 * `text`. */
void shuf__option_list(struct argp_state *state, const char *field, char *text, const char *example,
                       void (*take)(struct argp_state *state, const char *field, const char *word,
                                    void *context),
                       void *context);

/* One type of values of the set (shuf__dtype_set()). */
shuf_dtype shuf__option_dtype(struct argp_state *state, const char *field, const char *text,
                              unsigned set);

/* An option without which a verb cannot run, and an example of it: "--n 1e9". */
struct shuf__required {
    bool given;
    const char *example;
};

/* If some of them are missing, ends the process with one line that names these. */
void shuf__option_require(struct argp_state *state, const struct shuf__required *options,
                          size_t count);

/* The index of `text` in `names`, which ends with NULL. `expected` lists the names for the error.
 */
int shuf__option_choice(struct argp_state *state, const char *field, const char *text,
                        const char *const names[], const char *expected);

/* Ends the process: the two options exclude each other. */
void shuf__option_refuse_both(struct argp_state *state, const char *one, const char *other);

#endif
