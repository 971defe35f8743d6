/* SPDX-License-Identifier: MIT
 *
 * Characteristic functions of entries, and the tests that depend on them: means of products of
 * cosines of a block's values.
 */
#ifndef SHUF__GAUSS_WAVE_H
#define SHUF__GAUSS_WAVE_H

#include "tables.h"

#include <stdbool.h>

struct shuf__waves {
    double apart;  /* largest |phi(t) - exp(-t^2 / 2)| of all t and pairs */
    double beyond; /* largest |phi(t)| for t >= 3.5, in deviations of an entry */
};

/* A test averages prod cos(t y_p) over disjoint sets of n values. */
struct shuf__cosines {
    double score; /* largest offset of the mean, in standard deviations per block */
    int n;
    double t;
    double first_order; /* largest |offset - first order| / |first order| of `sets` sets */
    int sets;
};

/* phi of a pair at t. */
double shuf__wave(const shuf__tables *tables, int pair, double t);

struct shuf__waves shuf__waves_look(const shuf__tables *tables);

struct shuf__cosines shuf__cosines_look(const shuf__tables *tables);

/* E prod cos(t y_p) over the n <= 16 positions of `set`, less the normal law's, exactly. */
double shuf__cosine_offset(const shuf__tables *tables, int lane, const int *set, int n, double t);

/* The same to first order, which is equal for all sets of n. */
double shuf__cosine_first(const shuf__tables *tables, int n, double t);

#endif
