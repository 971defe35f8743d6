/* SPDX-License-Identifier: MIT
 *
 * The findings of the tests, and the verdict over all of them. Each finding has a p-value. A run
 * makes hundreds of findings, and some of them are extreme by chance. Holm's procedure allows for
 * this: a perfect source fails with a probability below alpha. This holds even if the findings
 * depend on each other.
 */
#ifndef SHUF__FINDINGS_H
#define SHUF__FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- P-values ---- */

/* A p-value is the probability that chance gives a value at least as extreme. */

/* A sum of squares of `dof` independent standard normal numbers. If dof is 0, there is nothing to
 * test. */
struct shuf__chi_squared {
    double sum, dof;
};

/* With SHUF__TWO_SIDED or more degrees of freedom the test is two-sided, because counts that fit
 * too well are not random either. With fewer, an exact fit is not rare, and the test is one-sided:
 * only large sums fail. */
enum { SHUF__TWO_SIDED = 16 };
double shuf__chi_squared_p(struct shuf__chi_squared x);

/* Two-sided; z is standard normal. */
double shuf__normal_p(double z);

/* For `heads` of `tosses` of a fair coin. Two-sided and exact. The test is conservative: counts are
 * integers, so the probability of a p-value below alpha is at most alpha. */
double shuf__coin_p(uint64_t heads, uint64_t tosses);

/* Pearson's statistic for counts of independent observations. Neighbouring cells are joined until
 * each cell expects at least SHUF__LEAST_EXPECTED observations and at least one in 500 of all. With
 * more cells the test would be weaker. */
enum { SHUF__LEAST_EXPECTED = 25 };
struct shuf__chi_squared shuf__pearson(const uint64_t *count, const double *p, size_t cells);

/* Does the same as shuf__pearson(), but only with the limit `least` for each cell. */
struct shuf__chi_squared shuf__pearson_least(const uint64_t *count, const double *p, size_t cells,
                                             double least);

/* For a count with a Poisson law. Two-sided and exact. Conservative, as above. */
double shuf__poisson_p(uint64_t count, double mean);

/* Divides 0 .. n - 1 into `cells` parts of nearly equal size. Value v is in part v * factor >> 32.
 */
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

/* ---- Findings ---- */

/* The acceptance region of a statistic: the values that pass. */
struct shuf__region {
    double low, high, p;
};

struct shuf__finding {
    uint32_t n;
    const char *test;
    char detail[48];
    double statistic, expected;
    double dof; /* 0: not a chi-squared statistic */
    double p, p_holm;
    bool failed;
    bool has_regions; /* the regions of the MMD at alpha, without Holm's procedure, as in the paper
                       */
    struct shuf__region hoeffding, normal;
};

struct shuf__findings {
    struct shuf__finding *finding;
    size_t count, room;
    size_t failed;
    double alpha;
    const char *test; /* the test of the findings that are added now */
};

/* Adds a finding with a p-value from 0 to 1. The returned pointer is valid until the next call. */
struct shuf__finding *shuf__find(struct shuf__findings *findings, uint32_t n, double statistic,
                                 double expected, double p, const char *detail, ...)
    __attribute__((format(printf, 6, 7)));

/* Adds a finding for a sum of squares. With 0 degrees of freedom it adds nothing. */
void shuf__find_chi_squared(struct shuf__findings *findings, uint32_t n, struct shuf__chi_squared x,
                            const char *detail, ...) __attribute__((format(printf, 4, 5)));

/* Sets p_holm and `failed` of each finding, and the number of failed findings. */
void shuf__findings_decide(struct shuf__findings *findings);

void shuf__findings_free(struct shuf__findings *findings);

#endif
