/* SPDX-License-Identifier: MIT
 *
 * From tables that nearly meet the conditions to some that do, and to integers. Nothing but the
 * four operations and roots, so every machine arrives at the same.
 */
#include "start.h"

#include <stdlib.h>
#include <string.h>

enum { M = SHUF__MAGNITUDES, N = SHUF__CONDITIONS, STEPS = 400 };

static const double good = 1e-12, longest = 0.02; /* of what is left; of one magnitude's step */

/* The derivative of condition k by variable v. */
static double slope(const struct shuf__conditions *c, int k, int v)
{
    const double share = shuf__condition_share(k, v / M);
    return share * c->table[v / M].slope[shuf__condition_order(k)][v % M];
}

static void make_normal(const struct shuf__conditions *c, double matrix[N][N])
{
    memset(matrix, 0, N * sizeof *matrix);
    for (int v = 0; v < SHUF__VARIABLES; v++)
        for (int k = 0; k < N; k++)
            for (int l = 0; l <= k; l++)
                matrix[k][l] += slope(c, k, v) * slope(c, l, v);
}

/* Cholesky's decomposition in place, then both substitutions in place. */
static bool solve(double matrix[N][N], double *x)
{
    for (int k = 0; k < N; k++)
        for (int l = 0; l <= k; l++) {
            double sum = matrix[k][l];
            for (int m = 0; m < l; m++)
                sum -= matrix[k][m] * matrix[l][m];
            if (k == l && !(sum > 0))
                return false;
            matrix[k][l] = k == l ? sqrt(sum) : sum / matrix[l][l];
        }
    for (int k = 0; k < N; k++) {
        for (int m = 0; m < k; m++)
            x[k] -= matrix[k][m] * x[m];
        x[k] /= matrix[k][k];
    }
    for (int k = N - 1; k >= 0; k--) {
        for (int m = k + 1; m < N; m++)
            x[k] -= matrix[m][k] * x[m];
        x[k] /= matrix[k][k];
    }
    return true;
}

bool shuf__polish(struct shuf__conditions *c, shuf__reals *x)
{
    for (int round = 0; round < STEPS; round++) {
        double matrix[N][N], by[N], step[SHUF__VARIABLES], largest = 0;
        shuf__conditions_look(c, x);
        if (shuf__conditions_largest(c) < good)
            return true;
        make_normal(c, matrix);
        memcpy(by, c->left, sizeof by);
        if (!solve(matrix, by))
            return false;
        for (int v = 0; v < SHUF__VARIABLES; v++) {
            step[v] = 0;
            for (int k = 0; k < N; k++)
                step[v] += slope(c, k, v) * by[k];
            largest = fmax(largest, fabs(step[v]));
        }
        for (int v = 0; v < SHUF__VARIABLES; v++)
            x->of[v] -= step[v] * (largest > longest ? longest / largest : 1);
    }
    return false;
}

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool shuf__round(const shuf__reals *x, shuf__tables *tables)
{
    for (int v = 0; v < SHUF__VARIABLES; v++) {
        const double magnitude = rint(fabs(x->of[v]) * SHUF__UNIT);
        if (!(magnitude <= SHUF__LARGEST))
            return false;
        tables->of[v / M][v % M] = (int32_t)magnitude;
    }
    for (int t = 0; t < SHUF__TABLES; t++)
        qsort(tables->of[t], M, sizeof tables->of[t][0], compare);
    return true;
}
