/* SPDX-License-Identifier: MIT
 *
 * argp with a better message for a mistyped option: "unrecognized option '--sed'; did you mean
 * --seed?".
 */
#ifndef SHUF__OPTION_PARSE_H
#define SHUF__OPTION_PARSE_H

#include <argp.h>
#include <stdbool.h>

/* Parses like argp_parse(), and ends the process like it. After a mistake the exit code is 64. */
void shuf__options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Ends the process like argp_failure(), with a printable message: it may have a word of the command
 * line, which must not control a terminal. */
void shuf__option_fail(const struct argp_state *state, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Calls `see` for each option of a parser and of its children, until it returns true. */
bool shuf__option_each(const struct argp *argp, bool (*see)(void *, const struct argp_option *),
                       void *context);

/* Whether a parser or one of its children has a visible option of this name, without dashes. */
bool shuf__option_exists(const struct argp *argp, const char *name);

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

#endif
