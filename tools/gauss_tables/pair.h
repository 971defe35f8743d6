/* SPDX-License-Identifier: MIT
 *
 * The coefficients a_k of an entry, and their derivatives by the magnitudes. An entry is the sum of
 * one draw from each table of a pair and a uniform number.
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

#endif
