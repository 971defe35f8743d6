/* SPDX-License-Identifier: MIT
 *
 * Finds tables with nearly normal entries: a damped Gauss-Newton method, then rounding to integers.
 */
#ifndef SHUF__GAUSS_SEARCH_H
#define SHUF__GAUSS_SEARCH_H

#include "tables.h"

#include <stdbool.h>

/* Takes magnitudes in units of a table's deviation, and returns them in units of SHUF__DEVIATION.
 * False if there is no memory. */
bool shuf__search(shuf__reals *x);

/* Rounds to integers in ascending order. The squares of every pair add up to an eighth of
 * SHUF__SQUARES. Returns false if a magnitude is above SHUF__LARGEST, or if no rounding gives this
 * sum. */
bool shuf__round(const shuf__reals *x, shuf__tables *tables);

#endif
