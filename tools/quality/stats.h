/* SPDX-License-Identifier: MIT
 *
 * The p-values of statistics: the probability of a value at least as extreme.
 */
#ifndef SHUF__STATS_H
#define SHUF__STATS_H

#include <stddef.h>
#include <stdint.h>

/* A sum of squares of `dof` independent standard normal numbers. dof 0: there is nothing to
 * test. */
struct shuf__chi_squared {
    double sum, dof;
};

/* Two-sided for SHUF__TWO_SIDED or more degrees of freedom, because counts that fit too well are
 * not random. With fewer, exact agreement is not rare, and only the upper side counts. */
enum { SHUF__TWO_SIDED = 16 };
double shuf__chi_squared_p(struct shuf__chi_squared x);

/* Two-sided; z is standard normal. */
double shuf__normal_p(double z);

/* Two-sided and exact: `heads` of `tosses` of a fair coin. Conservative, because it is discrete. */
double shuf__coin_p(uint64_t heads, uint64_t tosses);

/* Pearson's statistic for counts of independent observations. Neighbouring cells are pooled until
 * each has an expected count of SHUF__LEAST_EXPECTED and of one in 500 of all. More cells would
 * only weaken the test. */
enum { SHUF__LEAST_EXPECTED = 25 };
struct shuf__chi_squared shuf__pearson(const uint64_t *count, const double *p, size_t cells);

/* The same with the limit `least` only. */
struct shuf__chi_squared shuf__pearson_least(const uint64_t *count, const double *p, size_t cells,
                                             double least);

/* Two-sided and exact, for a count with a Poisson law. Conservative, because it is discrete. */
double shuf__poisson_p(uint64_t count, double mean);

/* Cuts 0 .. n - 1 into `cells` parts of nearly equal size: part = v * factor >> 32. */
struct shuf__parts {
    uint64_t factor;
    uint32_t n, cells;
};

static inline struct shuf__parts shuf__parts_of(uint32_t n, uint32_t most)
{
    const uint32_t cells = n < most ? n : most;
    return (struct shuf__parts){((uint64_t)cells << 32) / n, n, cells};
}

static inline uint32_t shuf__part(const struct shuf__parts *parts, uint32_t value)
{
    return (uint32_t)(value * parts->factor >> 32);
}

/* The number of values of each part. */
void shuf__part_sizes(const struct shuf__parts *parts, uint32_t *size);

#endif
