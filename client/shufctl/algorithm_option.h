/* SPDX-License-Identifier: MIT
 *
 * The option --algorithm of several verbs. SHUF__ALGORITHM_CHOICES is its argument in the help.
 */
#ifndef SHUF__ALGORITHM_OPTION_H
#define SHUF__ALGORITHM_OPTION_H

#include "algorithm.h"

#include <argp.h>

/* The value of --algorithm. Ends the process if it is empty; libshuf checks the name. */
const char *shuf__algorithm_option(struct argp_state *state, const char *text);

#endif
