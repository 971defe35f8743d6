/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl permute`, read and checked.
 */
#ifndef SHUF__PERMUTE_OPTIONS_H
#define SHUF__PERMUTE_OPTIONS_H

#include "order.h"

/* Ends the process as argp does: 0 after --help, 64 with one line when wrong. The order is of
 * *what. */
void shuf__permute_options(int argc, char **argv, shuf_permutation *what,
                           struct shuf__order *order);

#endif
