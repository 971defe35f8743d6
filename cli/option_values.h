/* SPDX-License-Identifier: MIT
 *
 * Parsers of option values, common to the verbs. On a wrong value they end the process as argp
 * does: one line on stderr and exit code 64.
 */
#ifndef SHUF__OPTION_VALUES_H
#define SHUF__OPTION_VALUES_H

#include <argp.h>
#include <stdint.h>

/* "--count": the name of the option `key` in a table that ends with {0}. Valid until the next call.
 */
const char *shuf__option_name(const struct argp_option *table, int key);

/* A number below 2^64, in any of the notations of shuf__number_parse(). */
void shuf__option_number(struct argp_state *state, const char *field, const char *text,
                         uint64_t *value);

/* The index of `text` in `names`, which ends with NULL. `expected` lists the names for the error.
 */
int shuf__option_choice(struct argp_state *state, const char *field, const char *text,
                        const char *const names[], const char *expected);

/* Ends the process: the two options exclude each other. */
void shuf__option_refuse_both(struct argp_state *state, const char *one, const char *other);

#endif
