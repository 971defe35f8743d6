/* SPDX-License-Identifier: MIT
 *
 * The characteristic functions of entries, phi(t) = E exp(i t x), and the tests whose result
 * depends on them: means of products of cosines of a block's values.
 */
#ifndef SHUF__GAUSS_WAVE_H
#define SHUF__GAUSS_WAVE_H

#include "tables.h"

#include <stdbool.h>

struct shuf__waves {
    double apart;  /* the largest |phi(t) - exp(-t^2 / 2)| of all t and pairs */
    double beyond; /* the largest |phi(t)| for t >= 3.5; x is in standard deviations of an entry */
};

/* The best test that averages the product of cos(t y_p) over disjoint sets of n values. */
struct shuf__cosines {
    double score; /* largest offset of the mean, in standard deviations per block */
    int n;
    double t;
    double first_order; /* the largest |offset - first order| / |first order| of `sets` sets */
    int sets;
};

/* The characteristic function of a pair at t. */
double shuf__wave(const shuf__tables *tables, int pair, double t);

struct shuf__waves shuf__waves_look(const shuf__tables *tables);

struct shuf__cosines shuf__cosines_look(const shuf__tables *tables);

/* The expectation of the product of cos(t y_p) over the n <= 16 positions of `set`, minus the same
 * expectation under the normal law. Exact. */
double shuf__cosine_offset(const shuf__tables *tables, int lane, const int *set, int n, double t);

/* An approximation of the same number, the first order (wave.c). It is equal for all sets of n
 * positions. */
double shuf__cosine_first(const shuf__tables *tables, int n, double t);

#endif
