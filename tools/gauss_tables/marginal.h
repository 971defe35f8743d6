/* SPDX-License-Identifier: MIT
 *
 * The law of one value, which is a sum of 32 independent entries.
 */
#ifndef SHUF__GAUSS_MARGINAL_H
#define SHUF__GAUSS_MARGINAL_H

#include "hermite.h"
#include "tables.h"

enum { SHUF__TAILS = 12 };

struct shuf__marginal {
    shuf__series c;               /* E psi_k of a value */
    double kolmogorov;            /* the largest distance of distribution functions */
    double tail[SHUF__TAILS + 1]; /* relative error of P(|z| > x), x = 1 .. 12 */
};

/* The law for SHUF__SHARED entries with each of the coefficients a[0] .. a[7]. */
struct shuf__marginal shuf__marginal_look(const shuf__series a[SHUF__PAIRS]);

#endif
