/* SPDX-License-Identifier: MIT
 *
 * The findings of the tests, and the verdict over all of them. Each finding has a p-value. A run
 * makes hundreds of findings, and some of them are extreme by chance. Holm's procedure allows for
 * this: a perfect source fails with a probability below alpha. This holds even if the findings
 * depend on each other.
 */
#ifndef SHUF__FINDINGS_H
#define SHUF__FINDINGS_H

#include "stats.h"

#include <stdbool.h>

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
