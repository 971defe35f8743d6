/* SPDX-License-Identifier: MIT
 *
 * Finds tables with nearly normal entries: a damped Gauss-Newton method, then rounding to integers.
 */
#ifndef SHUF__GAUSS_SEARCH_H
#define SHUF__GAUSS_SEARCH_H

#include "hermite.h"
#include "tables.h"

#include <stdbool.h>

enum { SHUF__VARIABLES = 2 * SHUF__MAGNITUDES }; /* of a pair */

/* The factors that all pairs share. */
struct shuf__sum {
    shuf__square table;   /* weights of a table and the rest of the entry */
    shuf__square rest;    /* weights of the other table and the uniform part */
    shuf__square uniform; /* `rest` times the uniform part's coefficients */
    double scale;         /* standard deviation of a table / that of an entry */
};

struct shuf__pair {
    double a[SHUF__ORDERS];                      /* a[i] is the coefficient a_2i */
    double slope[SHUF__ORDERS][SHUF__VARIABLES]; /* derivatives: magnitudes of t, then of t + 8 */
};

void shuf__sum_start(struct shuf__sum *sum);

/* Magnitudes are in units of the standard deviation of their table. */
void shuf__pair_look(const struct shuf__sum *sum, const double *one, const double *other,
                     struct shuf__pair *pair);

/* Takes magnitudes in units of a table's deviation, and returns them in units of SHUF__DEVIATION.
 * False if there is no memory. */
bool shuf__search(shuf__reals *x);

/* Rounds to integers in ascending order. The squares of every pair add up to an eighth of
 * SHUF__SQUARES. Returns false if a magnitude is above SHUF__LARGEST, or if no rounding gives this
 * sum. */
bool shuf__round(const shuf__reals *x, shuf__tables *tables);

#endif
