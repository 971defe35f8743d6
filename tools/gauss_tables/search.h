/* SPDX-License-Identifier: MIT
 *
 * Tables whose entries are near to normal: a damped Gauss-Newton method, and then integers.
 */
#ifndef SHUF__GAUSS_SEARCH_H
#define SHUF__GAUSS_SEARCH_H

#include "tables.h"

#include <stdbool.h>

/* From magnitudes in deviations of a table to such in integers' units. False: no memory. */
bool shuf__search(shuf__reals *x);

/* Integers in ascending order; every pair has an eighth of SHUF__SQUARES. False where a magnitude
 * is above SHUF__LARGEST, or the squares cannot be had. */
bool shuf__round(const shuf__reals *x, shuf__tables *tables);

#endif
