/* SPDX-License-Identifier: MIT
 *
 * From a statistic to its p-value: how likely a value as far out as this is.
 */
#ifndef SHUF__STATS_H
#define SHUF__STATS_H

#include <stddef.h>
#include <stdint.h>

/* A sum of squares and how many independent normals it is of. dof 0: there is nothing to test. */
struct shuf__chi_squared {
    double sum, dof;
};

/* Two-sided from SHUF__TWO_SIDED degrees of freedom on: counts that fit too well are not random
 * either. With fewer, exact agreement is no rare event, and only the upper side counts. */
enum { SHUF__TWO_SIDED = 16 };
double shuf__chi_squared_p(struct shuf__chi_squared x);

/* Two-sided; z is standard normal. */
double shuf__normal_p(double z);

/* Two-sided and exact: `heads` of `tosses` of an even coin. Conservative, being discrete. */
double shuf__coin_p(uint64_t heads, uint64_t tosses);

/* Pearson's, of counts of independent observations; neighbouring cells are pooled until each is
 * expected to hold SHUF__LEAST_EXPECTED, and one in 500 of all: more cells would only dilute. */
enum { SHUF__LEAST_EXPECTED = 25 };
struct shuf__chi_squared shuf__pearson(const uint64_t *count, const double *p, size_t cells);

/* The same where only `least` counts. */
struct shuf__chi_squared shuf__pearson_least(const uint64_t *count, const double *p, size_t cells,
                                             double least);

/* Two-sided and exact, of a count that follows Poisson's law. Conservative, being discrete. */
double shuf__poisson_p(uint64_t count, double mean);

/* `cells` parts of 0 .. n - 1, as even as can be: part = v * factor >> 32. */
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

/* How many values each part holds. */
void shuf__part_sizes(const struct shuf__parts *parts, uint32_t *size);

#endif
