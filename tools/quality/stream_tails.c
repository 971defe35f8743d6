/* SPDX-License-Identifier: MIT
 *
 * Tests of the tails on both sides: the number of values beyond several limits, and the
 * distribution of the values beyond the first limit.
 */
#include "stream.h"

#include <math.h>

enum { LIMITS = 5, PARTS = 64, SIDE = LIMITS + PARTS };

static const double limits[LIMITS] = {4, 4.5, 5, 5.5, 6};

/* The counts of a side begin at count[SIDE * side]: first the values beyond each limit, then the
 * values in parts of equal probability. */
static void add_tails(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    const struct shuf__stream_law *law = chunk->law;
    const double all = shuf__law_above(law, limits[0]);
    (void)sum;
    for (size_t i = 0; i < chunk->count; i++) {
        const double z = fabs(chunk->z[i]);
        if (z < limits[0] - 0.1) /* all numbers that are rounded to z are below the limit */
            continue;
        uint64_t *side = count + (chunk->z[i] > 0 ? SIDE : 0);
        const double above = shuf__law_above_spread(law, z, chunk->first + i);
        for (unsigned k = 0; k < LIMITS; k++)
            side[k] += above < shuf__law_above(law, limits[k]);
        if (above < all)
            side[LIMITS + (unsigned)(above / all * PARTS)]++;
    }
}

static void judge_side(const struct shuf__stream_law *law, double n, const uint64_t *side,
                       const char *name, struct shuf__findings *findings)
{
    double even[PARTS];
    for (unsigned k = 0; k < LIMITS; k++) {
        const double mean = n * shuf__law_above(law, limits[k]);
        shuf__find(findings, 0, (double)side[k], mean, shuf__poisson_p(side[k], mean), "%s%g", name,
                   limits[k]);
    }
    for (unsigned k = 0; k < PARTS; k++)
        even[k] = 1.0 / PARTS;
    shuf__find_chi_squared(findings, 0, shuf__pearson(side + LIMITS, even, PARTS), "spread, %s4",
                           name);
}

static void judge_tails(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    (void)sum;
    judge_side(law, (double)n, count, "below -", findings);
    judge_side(law, (double)n, count + SIDE, "above ", findings);
}

const struct shuf__stream_test shuf__stream_tails = {
    .name = "tails",
    .what = "values beyond 4, 4.5, 5, 5.5 and 6",
    .of = SHUF__OF_NORMAL,
    .counts = 2 * SIDE,
    .add = add_tails,
    .judge = judge_tails,
};
