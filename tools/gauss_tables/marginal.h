/* SPDX-License-Identifier: MIT
 *
 * The distribution of one value, which is a sum of 32 independent entries.
 */
#ifndef SHUF__GAUSS_MARGINAL_H
#define SHUF__GAUSS_MARGINAL_H

#include "hermite.h"
#include "tables.h"

enum { SHUF__TAILS = 12 };

struct shuf__marginal {
    shuf__series c;               /* E psi_k of a value */
    double kolmogorov;            /* the largest distance from the normal distribution function */
    double tail[SHUF__TAILS + 1]; /* relative error of P(|z| > x), x = 1 .. 12 */
};

/* The distribution of a value. Each of a[0] to a[7] holds for SHUF__SHARED entries. */
struct shuf__marginal shuf__marginal_look(const shuf__series a[SHUF__PAIRS]);

#endif
