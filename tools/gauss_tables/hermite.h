/* SPDX-License-Identifier: MIT
 *
 * Normalised Hermite polynomials psi_k = He_k / sqrt(k!), orthonormal under the normal law, and the
 * even coefficients a_k = E psi_k of a symmetric law. Sums add coefficients by a binomial formula.
 * Only + - * / and sqrt are used, so all IEEE 754 machines give the same bits.
 */
#ifndef SHUF__GAUSS_HERMITE_H
#define SHUF__GAUSS_HERMITE_H

enum {
    SHUF__ORDERS = 71,                     /* even orders, 0 .. 140 */
    SHUF__DEGREE = 2 * (SHUF__ORDERS - 1), /* the last one */
};

/* of[i] is the coefficient of order 2i. */
typedef struct shuf__series {
    double of[SHUF__ORDERS];
} shuf__series;

/* row i, column j <= i */
typedef struct shuf__square {
    double of[SHUF__ORDERS][SHUF__ORDERS];
} shuf__square;

/* psi_0(x) .. psi_last(x) */
void shuf__hermite(double x, int last, double *psi);

/* E psi_k of the uniform law of variance 1. */
shuf__series shuf__hermite_of_uniform(void);

/* weights[i][j] = sqrt((2i over 2j)) share^j (1 - share)^(i - j). This is the weight of a_2j(X)
 * a_2(i-j)(Y) in a_2i(X + Y), where X has `share` of the variance of the sum. */
void shuf__hermite_weights(double share, shuf__square *weights);

/* M_k = E (S / n)^k of the sum S of n signs. */
shuf__series shuf__moments_of_signs(int n);

#endif
