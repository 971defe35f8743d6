/* SPDX-License-Identifier: MIT
 *
 * The law of an entry, which is the sum of one draw from each table of a pair and a uniform number:
 * its coefficients a_k, and their slopes by the magnitudes.
 */
#ifndef SHUF__GAUSS_PAIR_H
#define SHUF__GAUSS_PAIR_H

#include "hermite.h"
#include "tables.h"

enum { SHUF__VARIABLES = 2 * SHUF__MAGNITUDES }; /* of a pair */

/* The factors that all pairs share. */
struct shuf__sum {
    shuf__square table;   /* weights of a table and the rest of the entry */
    shuf__square rest;    /* weights of the other table and the uniform part */
    shuf__square uniform; /* `rest` times the uniform part's coefficients */
    double scale;         /* deviation of a table / deviation of an entry */
};

struct shuf__pair {
    double a[SHUF__ORDERS];                      /* a_2i */
    double slope[SHUF__ORDERS][SHUF__VARIABLES]; /* by the magnitudes of t, then of t + 8 */
};

void shuf__sum_start(struct shuf__sum *sum);

/* Magnitudes are in units of their table's deviation. */
void shuf__pair_look(const struct shuf__sum *sum, const double *one, const double *other,
                     struct shuf__pair *pair);

#endif
