/* SPDX-License-Identifier: MIT
 *
 * What tables of real numbers have to fulfil, with derivatives: the mean variance of each pair is
 * 1, its mean cumulants of orders 4, 6 and 8 vanish, and those of orders 10 to 16 of all tables do.
 * In doubles: rounding to integers disturbs all this a thousand million times more.
 */
#ifndef SHUF__GAUSS_CONDITIONS_H
#define SHUF__GAUSS_CONDITIONS_H

#include "law.h"

enum {
    SHUF__OF_PAIR = 4, /* orders 2 to 8 */
    SHUF__OF_PAIRS = SHUF__OF_PAIR * SHUF__PAIRS,
    SHUF__CONDITIONS = SHUF__OF_PAIRS + SHUF__MATCHED - SHUF__OF_PAIR,
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
    double length[SHUF__MATCHED + 1];                  /* sqrt((2i)!) */
    double ways[SHUF__MATCHED + 1][SHUF__MATCHED + 1]; /* C(2i - 1, 2k - 1) */
    struct shuf__table_state table[SHUF__TABLES];
    double left[SHUF__CONDITIONS]; /* what is minus what should be: pairs, then all */
};

void shuf__conditions_start(struct shuf__conditions *c);

void shuf__conditions_look(struct shuf__conditions *c, const shuf__reals *x);

/* The order, halved, of the mean that condition `k` is about. */
static inline int shuf__condition_order(int k)
{
    return 1 + (k < SHUF__OF_PAIRS ? k % SHUF__OF_PAIR : k - SHUF__OF_PAIRS + SHUF__OF_PAIR);
}

/* A table's part in that mean. */
static inline double shuf__condition_share(int k, int table)
{
    if (k >= SHUF__OF_PAIRS)
        return 1.0 / SHUF__TABLES;
    return k / SHUF__OF_PAIR == table % SHUF__PAIRS ? 0.5 : 0;
}

double shuf__conditions_largest(const struct shuf__conditions *c);

#endif
