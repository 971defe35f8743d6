/* SPDX-License-Identifier: MIT
 *
 * See hermite.h.
 */
#include "hermite.h"

#include "tables.h"

#include <math.h>

void shuf__hermite(double x, int last, double *psi)
{
    psi[0] = 1;
    psi[1] = x;
    for (int k = 1; k < last; k++)
        psi[k + 1] = (x * psi[k] - sqrt(k) * psi[k - 1]) / sqrt(k + 1);
}

/* The integral of psi_k is psi_(k + 1) / sqrt(k + 1). */
shuf__series shuf__hermite_of_uniform(void)
{
    double psi[SHUF__DEGREE + 2];
    shuf__series uniform;
    shuf__hermite(sqrt(3), SHUF__DEGREE + 1, psi);
    for (int i = 0; i < SHUF__ORDERS; i++)
        uniform.of[i] = psi[2 * i + 1] / sqrt(3 * (2 * i + 1));
    return uniform;
}

/* The squares of the weights are binomial probabilities. */
void shuf__hermite_weights(double share, shuf__square *weights)
{
    double binomial[SHUF__DEGREE + 1] = {1};
    for (int k = 0; k <= SHUF__DEGREE; k++) {
        for (int j = 0; k % 2 == 0 && j < SHUF__ORDERS; j++)
            weights->of[k / 2][j] = 2 * j <= k ? sqrt(binomial[2 * j]) : 0;
        for (int j = k + 1; j > 0 && k < SHUF__DEGREE; j--)
            binomial[j] = share * binomial[j - 1] + (1 - share) * binomial[j];
        binomial[0] *= 1 - share;
    }
}

shuf__series shuf__moments_of_signs(int n)
{
    shuf__series moments = {{0}};
    double ways = ldexp(1, -n); /* the probability that `minus` of n signs are -1 */
    for (int minus = 0; minus <= n; minus++) {
        const double mean = 1 - 2.0 * minus / n;
        double power = ways;
        for (int i = 0; i < SHUF__ORDERS; i++, power *= mean * mean)
            moments.of[i] += power;
        ways *= (double)(n - minus) / (minus + 1);
    }
    return moments;
}
