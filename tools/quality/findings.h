/* SPDX-License-Identifier: MIT
 *
 * The findings of the tests, with one p-value each, and the verdict over all of them. A run makes
 * hundreds of findings, and some are extreme by chance. Holm's procedure keeps the probability that
 * a perfect source fails anywhere below alpha, even if the findings depend on each other.
 */
#ifndef SHUF__FINDINGS_H
#define SHUF__FINDINGS_H

#include "stats.h"

#include <stdbool.h>

/* The acceptance region of a statistic. */
struct shuf__region {
    double low, high, p;
};

struct shuf__finding {
    uint32_t n;
    const char *test;
    char detail[32];
    double statistic, expected;
    double dof; /* 0: not a chi-squared statistic */
    double p, p_holm;
    bool failed;
    bool has_regions; /* regions of the MMD at alpha, uncorrected, as in the paper */
    struct shuf__region hoeffding, normal;
};

struct shuf__findings {
    struct shuf__finding *finding;
    size_t count, room;
    size_t failed;
    double alpha;
    const char *test; /* the test of the findings that are added now */
};

/* Adds a finding with a p-value in [0, 1]. The pointer is valid until the next call. */
struct shuf__finding *shuf__find(struct shuf__findings *findings, uint32_t n, double statistic,
                                 double expected, double p, const char *detail, ...)
    __attribute__((format(printf, 6, 7)));

/* The same for a sum of squares. Without degrees of freedom it adds nothing. */
void shuf__find_chi_squared(struct shuf__findings *findings, uint32_t n, struct shuf__chi_squared x,
                            const char *detail, ...) __attribute__((format(printf, 4, 5)));

/* Fills p_holm and `failed` of each finding, and `failed` of all. */
void shuf__findings_decide(struct shuf__findings *findings);

void shuf__findings_free(struct shuf__findings *findings);

#endif
