/* SPDX-License-Identifier: MIT
 *
 * Characteristic functions of entries, and the tests that they decide: means of products of
 * cosines of values of a block.
 */
#ifndef SHUF__GAUSS_WAVE_H
#define SHUF__GAUSS_WAVE_H

#include "tables.h"

#include <stdbool.h>

struct shuf__waves {
    double apart;  /* |phi(t) - exp(-t^2 / 2)| at most, over all t and pairs */
    double beyond; /* |phi(t)| at most, t from 3.5 on, in deviations of an entry */
};

/* A test averages prod cos(t y_p) over disjoint sets of n values. */
struct shuf__cosines {
    double score; /* the mean's offset in standard deviations, per block, at most */
    int n;
    double t;
    double first_order; /* |offset - its first order| / |first order|, at most, of `sets` */
    int sets;
};

/* phi of a pair at t. */
double shuf__wave(const shuf__tables *tables, int pair, double t);

struct shuf__waves shuf__waves_look(const shuf__tables *tables);

struct shuf__cosines shuf__cosines_look(const shuf__tables *tables);

/* E prod cos(t y_p) over the n <= 16 positions of `set`, less the normal law's; every order. */
double shuf__cosine_offset(const shuf__tables *tables, int lane, const int *set, int n, double t);

/* The same to first order, which is equal for all sets of n. */
double shuf__cosine_first(const shuf__tables *tables, int n, double t);

#endif
