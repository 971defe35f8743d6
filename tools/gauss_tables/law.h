/* SPDX-License-Identifier: MIT
 *
 * The law of the output z = A S + B S' + C c: which coefficients give it unit variance and kurtosis
 * 3, what they are once rounded, and how far the law is from the normal one.
 */
#ifndef SHUF__GAUSS_LAW_H
#define SHUF__GAUSS_LAW_H

#include "cumulants.h"

enum { SHUF__MATCHED = 8 }; /* the last order that counts is 2 * this one, 16 */

/* Of S in units of one table's deviation, and of c. */
struct shuf__coefficients {
    shuf__real a, b, c;
};

/* As the generator has them: of integers. */
struct shuf__rounded {
    double a, b, c_high, c_low;
    float a32, b32;
};

/* Unit variance, A / B the golden ratio, kurtosis 3; without c where the sums' kurtosis is not
 * above 3. */
struct shuf__coefficients shuf__law_solve(const shuf__series *sum);

/* Neighbouring numbers are tried until the variance is as near to 1 as it goes. */
struct shuf__rounded shuf__law_round(const shuf__series *sum, const struct shuf__coefficients *by);

struct shuf__coefficients shuf__law_double(const struct shuf__rounded *rounded);
struct shuf__coefficients shuf__law_float(const struct shuf__rounded *rounded);

/* E He_n(z) / sqrt(n!) for n = 2i. */
shuf__series shuf__law_defects(const shuf__series *sum, const struct shuf__coefficients *by);

/* The root of the sum of their squares up to order 16. No polynomial of degree 16 whose variance is
 * one under the normal law has a mean that differs by more. */
double shuf__law_delta(const shuf__series *defects);

#endif
