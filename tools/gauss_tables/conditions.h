/* SPDX-License-Identifier: MIT
 *
 * What tables of real numbers have to fulfil, with derivatives: each one's variance is 1, and the
 * mean of their cumulants of order 4 to 16 is what the output needs. In doubles: rounding to
 * integers disturbs all this a thousand million times more.
 */
#ifndef SHUF__GAUSS_CONDITIONS_H
#define SHUF__GAUSS_CONDITIONS_H

#include "law.h"

enum {
    SHUF__CONDITIONS = SHUF__TABLES + SHUF__MATCHED - 1,
    SHUF__VARIABLES = SHUF__TABLES * SHUF__MAGNITUDES,
};

/* In standard deviations, table after table. */
typedef struct shuf__reals {
    double of[SHUF__VARIABLES];
} shuf__reals;

/* Index i: order 2i, divided by sqrt((2i)!), so that all are of one size. */
struct shuf__table_state {
    double cumulant[SHUF__MATCHED + 1];
    double slope[SHUF__MATCHED + 1][SHUF__MAGNITUDES];
};

struct shuf__conditions {
    double kurtosis;                  /* what c takes from the output's defect of order 4 (law.h) */
    double target[SHUF__MATCHED + 1]; /* of the mean, divided likewise */
    double length[SHUF__MATCHED + 1]; /* sqrt((2i)!) */
    double ways[SHUF__MATCHED + 1][SHUF__MATCHED + 1]; /* C(2i - 1, 2k - 1) */
    struct shuf__table_state table[SHUF__TABLES];
    double left[SHUF__CONDITIONS]; /* what is minus what should be: variances, then means */
};

/* Targets for which c, of this total width, brings the output's kurtosis to 3. */
void shuf__conditions_start(struct shuf__conditions *c, double width);

void shuf__conditions_look(struct shuf__conditions *c, const shuf__reals *x);

/* The order, halved, of the mean that condition `k` >= SHUF__TABLES is about. */
static inline int shuf__condition_order(int k)
{
    return k - SHUF__TABLES + 2;
}

double shuf__conditions_largest(const struct shuf__conditions *c);

#endif
