/* SPDX-License-Identifier: MIT
 *
 * The minimum of an augmented Lagrangian: penalties, plus multipliers times conditions, plus their
 * squares. NLopt's L-BFGS minimises; between its rounds the multipliers learn from what is left.
 * The penalties hold the tables near the quantiles where they start, and their own fourth and sixth
 * cumulants small, since the values of one transform are as independent as its tables are alike.
 */
#include "optimise.h"

#include <gsl/gsl_cdf.h>
#include <nlopt.h>
#include <string.h>

enum {
    M = SHUF__MAGNITUDES,
    ROUNDS = 20,
    EVALUATIONS = 300, /* in a round */
    STORED = 40,       /* steps that L-BFGS remembers */
};

static const double strength = 100;                                /* of squares */
static const double nearness = 3e-6, alike[] = {0, 0, 1e-2, 1e-3}; /* penalties */
static const double shake = 0x1p-7, start_grid = 0x1p20, result_grid = 0x1p13;

struct lagrangian {
    struct shuf__conditions *conditions;
    double multiplier[SHUF__CONDITIONS];
    shuf__reals start;
};

static double on_grid(double x, double grid)
{
    return rint(x * grid) / grid;
}

/* Quantiles, those of the tables between each other. On a grid, so that the last digit of a
 * library's logarithm does not matter. */
static void make_start(struct shuf__random *random, shuf__reals *start)
{
    for (int t = 0; t < SHUF__TABLES; t++) {
        double *x = start->of + t * M, squares = 0;
        for (int j = 0; j < M; j++) {
            const double place = 0.5 + (j + (t + 0.5) / SHUF__TABLES) / (2 * M);
            const double by = (double)(int64_t)shuf__random_word(random) * 0x1p-63 * shake;
            x[j] = on_grid(gsl_cdf_ugaussian_Pinv(place), start_grid) * (1 + by);
            squares += x[j] * x[j];
        }
        for (int j = 0; j < M; j++)
            x[j] /= sqrt(squares / M);
    }
}

/* ---- The loss ---------------------------------------------------------------- */

/* by_mean[i]: the derivative by the mean cumulant of order 2i. */
static double loss_of_conditions(const struct lagrangian *l, double by_variance[SHUF__TABLES],
                                 double by_mean[SHUF__MATCHED + 1])
{
    double loss = 0;
    for (int k = 0; k < SHUF__CONDITIONS; k++) {
        const double left = l->conditions->left[k];
        const double by = l->multiplier[k] + strength * left;
        loss += (l->multiplier[k] + by) / 2 * left;
        if (k < SHUF__TABLES)
            by_variance[k] = by;
        else
            by_mean[shuf__condition_order(k)] = by;
    }
    return loss;
}

static double loss_of_table(const struct shuf__table_state *table, double by_variance,
                            const double *by_mean, double *gradient)
{
    double loss = 0;
    for (int i = 1; i <= SHUF__MATCHED; i++) {
        const double penalty = i == 2 || i == 3 ? alike[i] * table->cumulant[i] : 0;
        const double by = i == 1 ? by_variance : by_mean[i] / SHUF__TABLES + penalty;
        loss += penalty / 2 * table->cumulant[i];
        for (int j = 0; j < M; j++)
            gradient[j] += by * table->slope[i][j];
    }
    return loss;
}

static double evaluate(unsigned n, const double *x, double *wanted, void *data)
{
    const struct lagrangian *l = data;
    double by_variance[SHUF__TABLES], by_mean[SHUF__MATCHED + 1];
    shuf__reals at, gradient;
    memcpy(at.of, x, sizeof at.of);
    shuf__conditions_look(l->conditions, &at);
    double loss = loss_of_conditions(l, by_variance, by_mean);
    for (unsigned v = 0; v < n; v++) {
        const double away = x[v] - l->start.of[v];
        loss += nearness / 2 * away * away;
        gradient.of[v] = nearness * away;
    }
    for (int t = 0; t < SHUF__TABLES; t++)
        loss +=
            loss_of_table(&l->conditions->table[t], by_variance[t], by_mean, gradient.of + t * M);
    if (wanted)
        memcpy(wanted, gradient.of, sizeof gradient.of);
    return loss;
}

/* ---- The minimum ------------------------------------------------------------- */

static bool minimise(struct lagrangian *l, shuf__reals *x)
{
    double loss;
    nlopt_opt lbfgs = nlopt_create(NLOPT_LD_LBFGS, SHUF__VARIABLES);
    if (!lbfgs)
        return false;
    nlopt_set_min_objective(lbfgs, evaluate, l);
    nlopt_set_vector_storage(lbfgs, STORED);
    nlopt_set_maxeval(lbfgs, EVALUATIONS);
    nlopt_set_ftol_rel(lbfgs, 1e-15);
    const nlopt_result result = nlopt_optimize(lbfgs, x->of, &loss);
    nlopt_destroy(lbfgs);
    /* -1 is also what it says when no step along the line is better */
    return result > 0 || result == NLOPT_FAILURE || result == NLOPT_ROUNDOFF_LIMITED;
}

bool shuf__optimise(struct shuf__random *random, struct shuf__conditions *c, shuf__reals *x)
{
    static struct lagrangian l;
    memset(&l, 0, sizeof l);
    l.conditions = c;
    make_start(random, &l.start);
    *x = l.start;
    for (int round = 0; round < ROUNDS; round++) {
        if (!minimise(&l, x))
            return false;
        shuf__conditions_look(c, x);
        for (int k = 0; k < SHUF__CONDITIONS; k++)
            l.multiplier[k] += strength * c->left[k];
    }
    for (int v = 0; v < SHUF__VARIABLES; v++)
        x->of[v] = on_grid(x->of[v], result_grid);
    shuf__conditions_look(c, x);
    return true;
}
