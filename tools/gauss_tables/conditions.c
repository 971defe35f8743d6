/* SPDX-License-Identifier: MIT
 *
 * See conditions.h.
 */
#include "conditions.h"

enum { M = SHUF__MAGNITUDES, TOP = SHUF__MATCHED };

void shuf__conditions_start(struct shuf__conditions *c)
{
    for (int i = 1; i <= TOP; i++) {
        c->length[i] = (double)shuf__hermite_length(2 * i);
        for (int k = 1; k < i; k++)
            c->ways[i][k] = (double)shuf__choose(2 * i - 1, 2 * k - 1);
    }
}

/* ---- One table --------------------------------------------------------------- */

/* moment[i] and powers[i][j] = x_j^(2i). */
static void take_powers(const double *x, double moment[TOP + 1], double powers[TOP + 1][M])
{
    for (int j = 0; j < M; j++)
        powers[0][j] = 1;
    moment[0] = 1;
    for (int i = 1; i <= TOP; i++) {
        double sum = 0;
        for (int j = 0; j < M; j++) {
            powers[i][j] = powers[i - 1][j] * x[j] * x[j];
            sum += powers[i][j];
        }
        moment[i] = sum / M;
    }
}

/* cumulant_n = moment_n - sum over j of C(n - 1, j - 1) cumulant_j moment_(n - j), and its
 * derivative by every magnitude. */
static void look_at_table(const struct shuf__conditions *c, const double *x,
                          struct shuf__table_state *state)
{
    double moment[TOP + 1], powers[TOP + 1][M];
    take_powers(x, moment, powers);
    for (int i = 1; i <= TOP; i++) {
        double value = moment[i], *slope = state->slope[i];
        for (int j = 0; j < M; j++)
            slope[j] = 2 * i * powers[i - 1][j] * x[j] / M;
        for (int k = 1; k < i; k++) {
            const double by_slope = c->ways[i][k] * moment[i - k];
            const double by_power = c->ways[i][k] * state->cumulant[k] * 2 * (i - k) / M;
            value -= by_slope * state->cumulant[k];
            for (int j = 0; j < M; j++)
                slope[j] -= by_slope * state->slope[k][j] + by_power * powers[i - k - 1][j] * x[j];
        }
        state->cumulant[i] = value;
    }
}

static void divide(const struct shuf__conditions *c, struct shuf__table_state *state)
{
    for (int i = 1; i <= TOP; i++) {
        state->cumulant[i] /= c->length[i];
        for (int j = 0; j < M; j++)
            state->slope[i][j] /= c->length[i];
    }
}

/* ---- All --------------------------------------------------------------------- */

void shuf__conditions_look(struct shuf__conditions *c, const shuf__reals *x)
{
    for (int t = 0; t < SHUF__TABLES; t++) {
        look_at_table(c, x->of + t * M, &c->table[t]);
        divide(c, &c->table[t]);
    }
    for (int k = 0; k < SHUF__CONDITIONS; k++) {
        const int order = shuf__condition_order(k);
        c->left[k] = order == 1 ? -1 / c->length[1] : 0;
        for (int t = 0; t < SHUF__TABLES; t++)
            c->left[k] += shuf__condition_share(k, t) * c->table[t].cumulant[order];
    }
}

double shuf__conditions_largest(const struct shuf__conditions *c)
{
    double largest = 0;
    for (int k = 0; k < SHUF__CONDITIONS; k++)
        largest = fmax(largest, fabs(c->left[k]));
    return largest;
}
