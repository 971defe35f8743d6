/* SPDX-License-Identifier: MIT
 *
 * See start.h.
 */
#include "start.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

enum { M = SHUF__MAGNITUDES };

static const double bend = 0.05, shift = 0.4, grid = 0x1p20;

/* Rounds to a grid. So all libraries give the same start, although the last digits of their
 * functions differ. */
static double on_grid(double x)
{
    return rint(x * grid) / grid;
}

/* A random number between -1 and 1. */
static double draw(struct shuf__random *random)
{
    return (double)((int64_t)shuf__random_word(random) >> 11) * 0x1p-52;
}

static void start_table(double *x, double offset, double by)
{
    double squares = 0;
    for (int j = 0; j < M; j++) {
        const double p = fmin(0.5 + (j + 0.5 + offset) / (2 * M), 1 - 0.15 / (2 * M));
        x[j] = on_grid(gsl_cdf_ugaussian_Pinv(p));
        x[j] = on_grid(x[j] * exp(by * (x[j] * x[j] - 1)));
        squares += x[j] * x[j];
    }
    for (int j = 0; j < M; j++)
        x[j] /= sqrt(squares / M);
}

void shuf__start(struct shuf__random *random, shuf__reals *x)
{
    for (int t = 0; t < SHUF__TABLES; t++) {
        const double offset = shift * draw(random);
        start_table(x->of[t], offset, bend * draw(random));
    }
}
