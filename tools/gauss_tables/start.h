/* SPDX-License-Identifier: MIT
 *
 * Tables of real numbers: near the normal law each, and together with the cumulants that the output
 * is to have. Their roundings are where search.h starts.
 */
#ifndef SHUF__GAUSS_START_H
#define SHUF__GAUSS_START_H

#include "conditions.h"
#include "random.h"

#include <stdbool.h>

/* Quantiles of the normal law, bent differently in every table: conditions of 1 are unmet. */
void shuf__start(struct shuf__random *random, shuf__reals *x);

/* Meets them, by Newton's method with the shortest steps that do. */
bool shuf__polish(struct shuf__conditions *c, shuf__reals *x);

/* Ascending and rounded. False where an entry is out of range. */
bool shuf__round(const shuf__reals *x, shuf__tables *tables);

#endif
