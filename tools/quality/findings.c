/* SPDX-License-Identifier: MIT
 *
 * See findings.h. Holm: "A simple sequentially rejective multiple test
 * procedure", Scandinavian Journal of Statistics 6, 1979.
 */
#include "findings.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
