/* SPDX-License-Identifier: MIT
 *
 * Integers near those that rounding gave, with which the output's Hermite moments vanish to 1e-19
 * and less. Rounding alone leaves 1e-7.
 */
#ifndef SHUF__GAUSS_SEARCH_H
#define SHUF__GAUSS_SEARCH_H

#include "cumulants.h"
#include "random.h"

#include <stdbool.h>

/* Each round is told on stderr. False without memory. */
bool shuf__search(struct shuf__random *random, shuf__tables *tables);

#endif
