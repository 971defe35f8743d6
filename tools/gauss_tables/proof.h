/* SPDX-License-Identifier: MIT
 *
 * What tables and coefficients are worth, computed from nothing but them.
 */
#ifndef SHUF__GAUSS_PROOF_H
#define SHUF__GAUSS_PROOF_H

#include "law.h"

#include <stdio.h>

/* What the generator needs: delta and every pair's residues below these, the room within those. */
#define SHUF__DELTA_LIMIT 3.1e-15
#define SHUF__DELTA32_LIMIT 1e-13
#define SHUF__PAIR_LIMIT 1e-5
enum { SHUF__ROOM_LEAST = 2, SHUF__ROOM_MOST = 4 };

struct shuf__proof {
    shuf__series sum;                /* cumulants of S */
    shuf__series defects, defects32; /* of z; of z in f32 */
    double delta, delta32;
    int64_t room;    /* what the squares lack */
    double variance; /* the largest | variance of a pair / 2 - 1 |, in units of a table's */
    double residue;  /* the largest | kappa_k | / sqrt(k!) of a pair's deviation, k = 4, 6, 8 */
    int32_t largest;
};

struct shuf__proof shuf__prove(const shuf__tables *tables, const struct shuf__coefficients *by);

/* In lines that each begin with `margin`. */
void shuf__proof_write(const struct shuf__proof *proof, const char *margin, FILE *to);

/* How many demands are not met, each told on stderr. */
int shuf__proof_faults(const struct shuf__proof *proof);

#endif
