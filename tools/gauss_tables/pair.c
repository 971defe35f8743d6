/* SPDX-License-Identifier: MIT
 *
 * See pair.h.
 */
#include "pair.h"

#include <math.h>
#include <string.h>

enum { N = SHUF__ORDERS, M = SHUF__MAGNITUDES };

/* The coefficients of one table, and their derivatives. */
struct table {
    double a[N];
    double slope[N][M];
};

/* Sets product[i][j] to weights[i][j] * b[i - j]. */
static void weigh(const shuf__square *weights, const double *b, shuf__square *product)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            product->of[i][j] = j <= i ? weights->of[i][j] * b[i - j] : 0;
}

static void apply(const shuf__square *by, const double *a, double *to)
{
    for (int i = 0; i < N; i++) {
        to[i] = 0;
        for (int j = 0; j <= i; j++)
            to[i] += by->of[i][j] * a[j];
    }
}

void shuf__sum_start(struct shuf__sum *sum)
{
    const double deviation = SHUF__DEVIATION, width = SHUF__SMOOTH / deviation;
    const double uniform = width * width / 12, table = (1 - uniform) / 2;
    const shuf__series a = shuf__hermite_of_uniform();
    shuf__hermite_weights(table, &sum->table);
    shuf__hermite_weights(table / (table + uniform), &sum->rest);
    weigh(&sum->rest, a.of, &sum->uniform);
    sum->scale = sqrt(table);
}

static void look_at_table(const double *x, struct table *t)
{
    memset(t->a, 0, sizeof t->a);
    for (int j = 0; j < M; j++) {
        double psi[SHUF__DEGREE + 1];
        shuf__hermite(x[j], SHUF__DEGREE, psi);
        t->slope[0][j] = 0;
        for (int i = 0; i < N; i++)
            t->a[i] += psi[2 * i] / M;
        for (int i = 1; i < N; i++)
            t->slope[i][j] = sqrt(2 * i) / M * psi[2 * i - 1];
    }
}

/* Writes row i of the product to `to` + i * SHUF__VARIABLES. */
static void chain(const shuf__square *by, const struct table *t, double *to)
{
    for (int i = 0; i < N; i++) {
        double row[M] = {0};
        for (int j = 1; j <= i; j++)
            for (int v = 0; v < M; v++)
                row[v] += by->of[i][j] * t->slope[j][v];
        memcpy(to + i * SHUF__VARIABLES, row, sizeof row);
    }
}

void shuf__pair_look(const struct shuf__sum *sum, const double *one, const double *other,
                     struct shuf__pair *pair)
{
    static struct table t, u;
    shuf__square by;
    double rest[N];
    look_at_table(one, &t);
    look_at_table(other, &u);
    apply(&sum->uniform, u.a, rest); /* the other table and the uniform part */
    weigh(&sum->table, rest, &by);
    apply(&by, t.a, pair->a);
    chain(&by, &t, pair->slope[0]);
    apply(&sum->uniform, t.a, rest);
    weigh(&sum->table, rest, &by);
    chain(&by, &u, pair->slope[0] + M);
}
