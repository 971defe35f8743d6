/* SPDX-License-Identifier: MIT
 *
 * Tables of real numbers: near the normal law each, and together with the cumulants that the output
 * is to have. Their roundings are where search.h starts.
 */
#ifndef SHUF__GAUSS_OPTIMISE_H
#define SHUF__GAUSS_OPTIMISE_H

#include "conditions.h"
#include "random.h"

#include <stdbool.h>

/* Minimises, by L-BFGS; leaves conditions of 1e-6 or so unmet. */
bool shuf__optimise(struct shuf__random *random, struct shuf__conditions *c, shuf__reals *x);

/* Meets them, by Newton's method with the shortest steps that do. */
bool shuf__polish(struct shuf__conditions *c, shuf__reals *x);

/* Ascending and rounded. False where an entry is out of range. */
bool shuf__round(const shuf__reals *x, shuf__tables *tables);

#endif
