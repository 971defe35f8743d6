/* SPDX-License-Identifier: MIT
 *
 * What a table and its coefficients are worth, computed from nothing but them.
 */
#ifndef SHUF__GAUSS_PROOF_H
#define SHUF__GAUSS_PROOF_H

#include "law.h"

#include <stdio.h>

/* What the generator needs: delta below it, every table's variance and that of the float outputs
 * within these. */
#define SHUF__DELTA_LIMIT 3.2e-15
#define SHUF__VARIANCE_LIMIT 1e-5
#define SHUF__FLOAT_LIMIT 1e-10

struct shuf__proof {
    shuf__series sum;                         /* cumulants of S */
    shuf__series defects, without, defects32; /* of f64; of the sums alone, scaled; of f32 */
    double delta, delta_without, delta32;
    double variance; /* the largest | variance - 1 | of a table */
    double fourth;   /* the root of the mean square of the tables' kappa_4 / sqrt(4!) */
    double sixth;
    int32_t largest;
    double width, ratio; /* of c's part of the output; A / B */
};

struct shuf__proof shuf__prove(const shuf__tables *tables, const struct shuf__rounded *rounded);

/* In lines that each begin with `margin`. */
void shuf__proof_write(const struct shuf__proof *proof, const char *margin, FILE *to);

/* How many demands are not met, each told on stderr. */
int shuf__proof_faults(const struct shuf__proof *proof);

#endif
