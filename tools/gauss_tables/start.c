/* SPDX-License-Identifier: MIT
 *
 * Where Newton's method starts. Tables that are too much alike have derivatives that are too much
 * alike: the seed makes the tails of some lighter and of others heavier, and quantiles lie between
 * each other, those of a pair far apart.
 */
#include "start.h"

#include <gsl/gsl_cdf.h>

enum { M = SHUF__MAGNITUDES, STIR = 5 };

static const double bend = 0.02, grid = 0x1p20;

/* The last digit of a library's logarithm shall not matter. */
static double on_grid(double x)
{
    return rint(x * grid) / grid;
}

static void start_table(double *x, double offset, double by)
{
    double squares = 0;
    for (int j = 0; j < M; j++) {
        x[j] = on_grid(gsl_cdf_ugaussian_Pinv(0.5 + (j + offset) / (2 * M)));
        x[j] = on_grid(x[j] * exp(by * (x[j] * x[j] - 1) / 2));
        squares += x[j] * x[j];
    }
    for (int j = 0; j < M; j++)
        x[j] /= sqrt(squares / M);
}

void shuf__start(struct shuf__random *random, shuf__reals *x)
{
    for (int t = 0; t < SHUF__TABLES; t++) {
        const double offset = (STIR * t % SHUF__TABLES + 0.5) / SHUF__TABLES;
        const double by = (double)(int64_t)shuf__random_word(random) * 0x1p-63 * bend;
        start_table(x->of + t * M, offset, by);
    }
}
