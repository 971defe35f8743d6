/* SPDX-License-Identifier: MIT
 *
 * The proof: how far a block is from independent normal values, computed from the integers of the
 * tables (README.md).
 */
#ifndef SHUF__GAUSS_PROOF_H
#define SHUF__GAUSS_PROOF_H

#include "block.h"
#include "marginal.h"
#include "wave.h"

#include <stdio.h>

/* The limits of a proof: a figure must be below its limit. */
#define SHUF__Z2_LIMIT 6e-10        /* chi^2 of a block: terms of single entries */
#define SHUF__TOTAL_LIMIT 1.1e-9    /* the same with the terms of two entries */
#define SHUF__CHI_MEAN_LIMIT 1e-3   /* chi^2 of an entry: mean over the pairs of tables */
#define SHUF__CHI_LIMIT 5e-3        /* the same for each pair of tables */
#define SHUF__APART_LIMIT 1.5e-2    /* |phi(t) - exp(-t^2 / 2)| */
#define SHUF__BEYOND_LIMIT 1.5e-2   /* |phi(t)|, t >= 3.5 */
#define SHUF__KOLMOGOROV_LIMIT 5e-9 /* distribution function of one value */
#define SHUF__TAIL_LIMIT 1e-3       /* tail of one value, up to 8 deviations */
#define SHUF__SCORE_LIMIT 1e-5      /* products of cosines */

struct shuf__proof {
    struct shuf__entries entries;
    struct shuf__block block;
    struct shuf__marginal marginal;
    struct shuf__waves waves;
    struct shuf__cosines cosines;
    double chi_mean, chi_most;
    int64_t squares; /* the sum of squares minus SHUF__SQUARES */
    int64_t uneven;  /* the largest distance of a pair's squares from their mean */
    int32_t largest;
};

/* False if there is no memory. */
bool shuf__prove(const shuf__tables *tables, struct shuf__proof *proof);

/* Write lines that begin with `margin`. The summary is also in the header's comment. */
void shuf__proof_write_summary(const struct shuf__proof *proof, const char *margin, FILE *to);
void shuf__proof_write(const struct shuf__proof *proof, const char *margin, FILE *to);

/* The sum of z^2 and the magnitudes of the terms of two entries. */
double shuf__proof_total(const struct shuf__proof *proof);

/* The number of violated limits. Prints each on stderr. */
int shuf__proof_faults(const struct shuf__proof *proof);

#endif
