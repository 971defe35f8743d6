/* SPDX-License-Identifier: MIT
 *
 * See marginal.h. Two facts are used:
 *
 * - G(s) = E exp(s x - s^2 / 2) is the power series with the coefficients E He_k / k!. The G of a
 *   sum is the product of the G of its terms. So the coefficients of a value follow from a product
 *   of 32 power series.
 * - The integral of psi_k times the normal density, from x to infinity, is psi_(k - 1)(x) / sqrt(k)
 *   times the density at x.
 */
#include "marginal.h"

#include <math.h>

enum { N = SHUF__ORDERS };

/* The coefficients E He_k / k! of an entry divided by sqrt(32). */
static shuf__series generating(const shuf__series *a)
{
    shuf__series series;
    double scale = 1; /* 32^(-k/2) / sqrt(k!) */
    for (int i = 0; i < N; i++) {
        series.of[i] = a->of[i] * scale;
        scale /= SHUF__BLOCK * sqrt((2.0 * i + 1) * (2.0 * i + 2));
    }
    return series;
}

static void multiply(shuf__series *by, const shuf__series *with)
{
    shuf__series product = {{0}};
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++)
            product.of[i] += by->of[j] * with->of[i - j];
    *by = product;
}

/* P(z > x) minus the same probability of the normal law, divided by the normal density at x. */
static double excess(const shuf__series *c, double x)
{
    double psi[SHUF__DEGREE + 1], sum = 0;
    shuf__hermite(x, SHUF__DEGREE, psi);
    for (int i = 1; i < N; i++)
        sum += c->of[i] * psi[2 * i - 1] / sqrt(2 * i);
    return sum;
}

struct shuf__marginal shuf__marginal_look(const shuf__series a[SHUF__PAIRS])
{
    struct shuf__marginal m = {.c = {{1}}};
    for (int p = 0; p < SHUF__PAIRS; p++) {
        const shuf__series one = generating(&a[p]);
        for (int i = 0; i < SHUF__SHARED; i++)
            multiply(&m.c, &one);
    }
    double root = 1; /* sqrt(k!) */
    for (int i = 1; i < N; i++) {
        root *= sqrt((2.0 * i - 1) * (2.0 * i));
        m.c.of[i] *= root;
    }
    for (double x = 0; x < 10; x += 0x1p-8) {
        const double density = exp(-x * x / 2) / sqrt(2 * M_PI);
        m.kolmogorov = fmax(m.kolmogorov, fabs(excess(&m.c, x)) * density);
    }
    for (int x = 1; x <= SHUF__TAILS; x++) {
        const double density = exp(-x * x / 2.0) / sqrt(2 * M_PI);
        m.tail[x] = excess(&m.c, x) * density / (erfc(x / sqrt(2)) / 2);
    }
    return m;
}
