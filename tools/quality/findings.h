/* SPDX-License-Identifier: MIT
 *
 * What the tests found: one p-value each, and over all of them together the
 * verdict. A run makes hundreds of findings, of which some are far out by chance;
 * Holm's procedure keeps the probability that a perfect source fails anywhere
 * below alpha, however the findings depend on each other.
 */
#ifndef SHUF__FINDINGS_H
#define SHUF__FINDINGS_H

#include "stats.h"

#include <stdbool.h>

/* Where the statistic may lie. */
struct shuf__region {
    double low, high, p;
};

struct shuf__finding {
    uint32_t n;
    const char *test;
    char detail[32];
    double statistic, expected;
    double dof; /* 0: of no chi-squared */
    double p, p_holm;
    bool failed;
    bool has_regions; /* the MMD's: at alpha, uncorrected, as in the paper */
    struct shuf__region hoeffding, normal;
};

struct shuf__findings {
    struct shuf__finding *finding;
    size_t count, room;
    size_t failed;
    double alpha;
    const char *test; /* what is added now belongs to it */
};

/* Adds one; its p-value is in [0, 1]. Valid until the next. */
struct shuf__finding *shuf__find(struct shuf__findings *findings, uint32_t n, double statistic,
                                 double expected, double p, const char *detail, ...)
    __attribute__((format(printf, 6, 7)));

/* The same of a sum of squares; without degrees of freedom there is nothing to find. */
void shuf__find_chi_squared(struct shuf__findings *findings, uint32_t n, struct shuf__chi_squared x,
                            const char *detail, ...) __attribute__((format(printf, 4, 5)));

/* Fills p_holm, failed of each and of all. */
void shuf__findings_decide(struct shuf__findings *findings);

void shuf__findings_free(struct shuf__findings *findings);

#endif
