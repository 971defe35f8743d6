/* SPDX-License-Identifier: MIT
 *
 * The law of the output z = S 2^-19 + (h + 1/2) C: which C gives it unit variance, and how far it
 * is from the normal one. f64 and f32 have the same, as 2^-19 is exact in both and C of f32 is
 * larger as its h is shorter.
 */
#ifndef SHUF__GAUSS_LAW_H
#define SHUF__GAUSS_LAW_H

#include "cumulants.h"

enum { SHUF__MATCHED = 8 }; /* the last order that counts is 2 * this one, 16 */

/* What the tables' squares lack for S to have variance 1: their sum is 32 * 2^38 less this. */
int64_t shuf__law_room(const shuf__tables *tables);

/* C for unit variance; 0 where S leaves it none. */
double shuf__law_solve(const shuf__series *sum);

/* The width of the uniform part, in quanta of S. */
double shuf__law_width(double c);

/* E He_n(z) / sqrt(n!) for n = 2i. */
shuf__series shuf__law_defects(const shuf__series *sum, double c);

/* The root of the sum of their squares up to order 16. No polynomial of degree 16 whose variance is
 * one under the normal law has a mean that differs by more. */
double shuf__law_delta(const shuf__series *defects);

#endif
