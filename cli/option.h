/* SPDX-License-Identifier: MIT
 *
 * The options of the command line: argp with a better message for a mistyped option, such as
 * "unrecognized option '--sed'; did you mean --seed?", and parsers of the values of options.
 */
#ifndef SHUF__OPTION_H
#define SHUF__OPTION_H

#include "dtype.h"

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Parsing ---- */

/* Parses like argp_parse(), and ends the process like it. After a mistake the exit code is 64. */
void shuf__options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Ends the process like argp_failure(), with a printable message: it may have a word of the command
 * line, which must not control a terminal. */
void shuf__option_fail(const struct argp_state *state, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Calls `see` for each option of a parser and of its children, until it returns true. */
bool shuf__option_each(const struct argp *argp, bool (*see)(void *, const struct argp_option *),
                       void *context);

/* From now on shuf__options_parse() passes its parser to `list`, and ends the process. */
void shuf__options_list_instead(void (*list)(const struct argp *argp));

/* From now on, if shuf__options_parse() ends the process because of a mistake, it also passes the
 * mistake to `tell`. */
void shuf__options_tell(void (*tell)(const char *mistake));

/* The number of words that `option` takes with its value: 1 or 2. 0 if argp has no such option.
 */
int shuf__option_words(const struct argp *argp, const char *option);

/* Prints one line that names the nearest option, and returns 64. `program` begins the line. */
int shuf__option_refuse_unknown(const struct argp *argp, const char *program, const char *option);

/* For an option that is the last word and lacks its value: prints one line that names the expected
 * value, and returns 64. */
int shuf__option_refuse_valueless(const struct argp *argp, const char *program, const char *option);

/* ---- Values ---- */

/* Parsers of option values. They end the process on a wrong value as argp does: one line on stderr
 * and exit code 64. */

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
