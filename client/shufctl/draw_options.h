/* SPDX-License-Identifier: MIT
 *
 * The command lines of `shufctl gauss` and `shufctl uniform`, read and checked.
 */
#ifndef SHUF__DRAW_OPTIONS_H
#define SHUF__DRAW_OPTIONS_H

#include "order.h"

/* what->distribution says which, and is all that is set before. Ends the process as argp does: 0
 * after --help, 64 with one line when wrong. The order is of *what. */
void shuf__draw_options(int argc, char **argv, shuf_numbers *what, struct shuf__order *order);

#endif
