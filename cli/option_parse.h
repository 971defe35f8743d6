/* SPDX-License-Identifier: MIT
 *
 * argp with a better word for a mistyped option: "unrecognized option '--sed'; did you mean
 * --seed?".
 */
#ifndef SHUF__OPTION_PARSE_H
#define SHUF__OPTION_PARSE_H

#include <argp.h>

/* Parses as argp_parse() does, and ends the process as it does, on a mistake with 64. */
void shuf__options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* The number of words that `option` takes with its value: 1 or 2. 0 where argp has no such option.
 */
int shuf__option_words(const struct argp *argp, const char *option);

/* Prints one line that names the nearest option, and returns 64. `program` begins the line. */
int shuf__option_refuse_unknown(const struct argp *argp, const char *program, const char *option);

#endif
