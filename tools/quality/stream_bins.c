/* SPDX-License-Identifier: MIT
 *
 * The law of single values: their counts in 1024 cells of equal probability, and the
 * Anderson-Darling test on batches.
 */
#include "stream.h"

#include <math.h>
#include <stdlib.h>

enum { BATCH = 4096, P_CELLS = 32 };

static void add_bins(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    for (size_t i = 0; i < chunk->count; i++)
        count[shuf__cell(&chunk->law->cells, chunk->z[i])]++;
}

static void judge_bins(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                       const double *sum, struct shuf__findings *findings)
{
    (void)n;
    (void)sum;
    const struct shuf__chi_squared x =
        shuf__pearson_least(count, law->cells.p, law->cells.count, SHUF__LEAST_EXPECTED);
    shuf__find_chi_squared(findings, 0, x, "%.0f cells", x.dof + 1);
}

const struct shuf__stream_test shuf__stream_bins = {
    .name = "bins",
    .what = "cells of equal probability",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .counts = SHUF__CELLS,
    .add = add_bins,
    .judge = judge_bins,
};

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Anderson and Darling's statistic. u is sorted. For a good stream u is uniform. */
static double statistic(const double *u, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)(2 * i + 1) *
               (log(fmax(u[i], 1e-300)) + log(fmax(1 - u[count - 1 - i], 1e-17)));
    return -(double)count - sum / (double)count;
}

/* The sums are the sum of the p-values' logarithms and the number of p-values. The counts are a
 * histogram of the p-values. A chunk has one batch. */
static void add_batches(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    double *u = chunk->scratch;
    if (chunk->count < BATCH)
        return;
    for (size_t i = 0; i < BATCH; i++)
        u[i] = shuf__law_below_spread(chunk->law, chunk->z[i], chunk->first + i);
    qsort(u, BATCH, sizeof *u, by_value);
    const double p = fmax(shuf__law_anderson_darling(statistic(u, BATCH)), 1e-300);
    const unsigned cell = (unsigned)(p * P_CELLS);
    count[cell < P_CELLS ? cell : P_CELLS - 1]++;
    sum[0] += log(p);
    sum[1]++;
}

static void judge_batches(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    double even[P_CELLS];
    (void)law;
    (void)n;
    for (unsigned k = 0; k < P_CELLS; k++)
        even[k] = 1.0 / P_CELLS;
    if (sum[1] >= 1) /* Fisher's method to combine p-values */
        shuf__find_chi_squared(findings, 0, (struct shuf__chi_squared){-2 * sum[0], 2 * sum[1]},
                               "Fisher of %.0f", sum[1]);
    shuf__find_chi_squared(findings, 0, shuf__pearson(count, even, P_CELLS), "%.0f p-values",
                           sum[1]);
}

const struct shuf__stream_test shuf__stream_anderson_darling = {
    .name = "anderson-darling",
    .what = "Anderson and Darling's test on batches of 4096",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .counts = P_CELLS,
    .sums = 2,
    .add = add_batches,
    .judge = judge_batches,
};
