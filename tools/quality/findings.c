/* SPDX-License-Identifier: MIT
 *
 * See findings.h.
 */
#include "findings.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- P-values ---- */

static double both_sides(double lower, double upper)
{
    const double p = 2 * (lower < upper ? lower : upper);
    return p < 1 ? p : 1;
}

double shuf__chi_squared_p(struct shuf__chi_squared x)
{
    const double upper = gsl_cdf_chisq_Q(x.sum, x.dof);
    return x.dof < SHUF__TWO_SIDED ? upper : both_sides(gsl_cdf_chisq_P(x.sum, x.dof), upper);
}

double shuf__normal_p(double z)
{
    return both_sides(gsl_cdf_ugaussian_P(z), gsl_cdf_ugaussian_Q(z));
}

/* GSL's binomial law takes numbers of 32 bits. For larger numbers the normal law is exact enough.
 */
double shuf__coin_p(uint64_t heads, uint64_t tosses)
{
    if (tosses > UINT32_MAX)
        return shuf__normal_p((2.0 * (double)heads - (double)tosses) / sqrt((double)tosses));
    const unsigned k = (unsigned)heads, s = (unsigned)tosses;
    return both_sides(gsl_cdf_binomial_P(k, 0.5, s),
                      k == 0 ? 1 : gsl_cdf_binomial_Q(k - 1, 0.5, s));
}

/* GSL takes numbers of 32 bits. For larger and even for much smaller numbers the normal law is
 * exact enough. */
double shuf__poisson_p(uint64_t count, double mean)
{
    if (mean <= 0)
        return count == 0;
    if (mean > 1e6 || count > UINT32_MAX)
        return shuf__normal_p(((double)count - mean) / sqrt(mean));
    const unsigned k = (unsigned)count;
    const double lower = gsl_cdf_poisson_P(k, mean);
    const double upper = k == 0 ? 1 : gsl_cdf_poisson_Q(k - 1, mean);
    return both_sides(lower, upper);
}

struct pool {
    double expected; /* of the current cell */
    uint64_t observed;
    struct shuf__chi_squared x; /* of the cells before it */
};

static void close_cell(struct pool *pool)
{
    const double off = (double)pool->observed - pool->expected;
    pool->x.sum += off * off / pool->expected;
    pool->x.dof++;
    pool->expected = 0;
    pool->observed = 0;
}

static double sum_of(const uint64_t *count, size_t cells)
{
    double total = 0;
    for (size_t k = 0; k < cells; k++)
        total += (double)count[k];
    return total;
}

struct shuf__chi_squared shuf__pearson_least(const uint64_t *count, const double *p, size_t cells,
                                             double least)
{
    struct pool pool = {.x = {0, -1}}; /* one degree less, because the sum of the counts is given */
    const double total = sum_of(count, cells);
    double left = 0;
    for (size_t k = 0; k < cells; k++)
        left += p[k];
    for (size_t k = 0; k < cells; k++) {
        pool.expected += total * p[k];
        pool.observed += count[k];
        left -= p[k];
        if (pool.expected >= least && total * left >= least)
            close_cell(&pool); /* otherwise the last cell also gets the rest, which is too small */
    }
    if (pool.expected > 0)
        close_cell(&pool);
    return pool.x;
}

struct shuf__chi_squared shuf__pearson(const uint64_t *count, const double *p, size_t cells)
{
    return shuf__pearson_least(count, p, cells,
                               fmax(SHUF__LEAST_EXPECTED, sum_of(count, cells) / 500));
}

void shuf__part_sizes(const struct shuf__parts *parts, uint32_t *size)
{
    memset(size, 0, parts->cells * sizeof *size);
    for (uint32_t value = 0; value < parts->n; value++)
        size[shuf__part(parts, value)]++;
}

/* ---- Findings ---- */

/* Holm: "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
 * Statistics 6, 1979. */

static struct shuf__finding *add(struct shuf__findings *all)
{
    if (all->count == all->room) {
        all->room = 2 * all->room + 64;
        all->finding = realloc(all->finding, all->room * sizeof *all->finding);
        assert(all->finding);
    }
    struct shuf__finding *f = &all->finding[all->count++];
    *f = (struct shuf__finding){.test = all->test};
    return f;
}

struct shuf__finding *shuf__find(struct shuf__findings *findings, uint32_t n, double statistic,
                                 double expected, double p, const char *detail, ...)
{
    struct shuf__finding *f = add(findings);
    va_list args;
    assert(p >= 0 && p <= 1);
    f->n = n;
    f->statistic = statistic;
    f->expected = expected;
    f->p = p;
    va_start(args, detail);
    vsnprintf(f->detail, sizeof f->detail, detail, args);
    va_end(args);
    return f;
}

void shuf__find_chi_squared(struct shuf__findings *findings, uint32_t n, struct shuf__chi_squared x,
                            const char *detail, ...)
{
    if (x.dof <= 0)
        return;
    struct shuf__finding *f = add(findings);
    va_list args;
    f->n = n;
    f->statistic = x.sum;
    f->expected = f->dof = x.dof;
    f->p = shuf__chi_squared_p(x);
    va_start(args, detail);
    vsnprintf(f->detail, sizeof f->detail, detail, args);
    va_end(args);
}

static int by_p(const void *left, const void *right)
{
    const struct shuf__finding *const *a = left, *const *b = right;
    return ((*a)->p > (*b)->p) - ((*a)->p < (*b)->p);
}

void shuf__findings_decide(struct shuf__findings *findings)
{
    struct shuf__finding **order = calloc(findings->count + 1, sizeof(struct shuf__finding *));
    double most = 0;
    assert(order);
    for (size_t i = 0; i < findings->count; i++)
        order[i] = &findings->finding[i];
    qsort(order, findings->count, sizeof *order, by_p);
    findings->failed = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const double corrected = order[i]->p * (double)(findings->count - i);
        most = corrected > most ? corrected : most;
        order[i]->p_holm = most < 1 ? most : 1;
        order[i]->failed = order[i]->p_holm <= findings->alpha;
        findings->failed += order[i]->failed;
    }
    free(order);
}

void shuf__findings_free(struct shuf__findings *findings)
{
    free(findings->finding);
    *findings = (struct shuf__findings){0};
}
