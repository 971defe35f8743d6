/* SPDX-License-Identifier: MIT
 *
 * Normalised Hermite polynomials psi_k = He_k / sqrt(k!). Under the normal law each has variance 1,
 * and no two are correlated. The coefficients a_k = E psi_k describe a distribution. For a
 * symmetric one only even k matter. A binomial formula gives the coefficients of a sum of two
 * numbers. The code uses only + - * / and sqrt, so all IEEE 754 machines give the same bits.
 */
#ifndef SHUF__GAUSS_HERMITE_H
#define SHUF__GAUSS_HERMITE_H

enum {
    SHUF__ORDERS = 71,                     /* the number of even orders, 0 to 140 */
    SHUF__DEGREE = 2 * (SHUF__ORDERS - 1), /* the last order */
};

/* of[i] is the coefficient of order 2i. */
typedef struct shuf__series {
    double of[SHUF__ORDERS];
} shuf__series;

/* A triangle of numbers: row i has columns 0 to i. */
typedef struct shuf__square {
    double of[SHUF__ORDERS][SHUF__ORDERS];
} shuf__square;

/* Sets psi[k] to psi_k(x), for k = 0 to `last`. */
void shuf__hermite(double x, int last, double *psi);

/* The coefficients E psi_k of the uniform distribution with variance 1. */
shuf__series shuf__hermite_of_uniform(void);

/* Sets weights[i][j] to sqrt(C(2i, 2j)) share^j (1 - share)^(i - j), where C is the binomial
 * coefficient. This is the weight of a_2j(X) a_2(i-j)(Y) in a_2i(X + Y), if X has the part `share`
 * of the variance of X + Y. */
void shuf__hermite_weights(double share, shuf__square *weights);

/* M_k = E (S / n)^k, where S is the sum of n random signs. */
shuf__series shuf__moments_of_signs(int n);

#endif
