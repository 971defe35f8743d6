/* SPDX-License-Identifier: MIT
 *
 * The law of the output z = S A + (h + 1/2) C: which A and C give it unit variance, and how far it
 * is from the normal one.
 */
#ifndef SHUF__GAUSS_LAW_H
#define SHUF__GAUSS_LAW_H

#include "cumulants.h"

enum { SHUF__MATCHED = 8 }; /* the last order that counts is 2 * this one, 16 */

/* C 2^32 / A: the uniform part is one quantum of S wide, so that all fractions of one are equally
 * likely, and a little more, so that the products with C have bits below all others; at most 2^-17
 * of a quantum is covered twice. */
#define SHUF__OVERLAP 0x1.00005a827999fp+0

struct shuf__coefficients {
    shuf__real a, c;
};

/* What the tables' squares lack for S 2^-19 to have variance 1: their sum is 32 * 2^38 less this.
 * Of f32, whose A is 2^-19 exactly, 8/3 would be best. */
int64_t shuf__law_room(const shuf__tables *tables);

/* For unit variance. */
struct shuf__coefficients shuf__law_solve(const shuf__series *sum);

/* As doubles. */
struct shuf__coefficients shuf__law_round(const struct shuf__coefficients *by);

/* What they become in f32. */
struct shuf__coefficients shuf__law_float(const struct shuf__coefficients *by);

/* E He_n(z) / sqrt(n!) for n = 2i. */
shuf__series shuf__law_defects(const shuf__series *sum, const struct shuf__coefficients *by);

/* The root of the sum of their squares up to order 16. No polynomial of degree 16 whose variance is
 * one under the normal law has a mean that differs by more. */
double shuf__law_delta(const shuf__series *defects);

#endif
