/* SPDX-License-Identifier: MIT
 *
 * See moments.h.
 */
#include "moments.h"

#include "shuf/half.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* P(a < z < b) for 0 <= a < b. The difference of upper tails keeps its precision for large a. */
static long double probability(long double a, long double b)
{
    return (erfcl(a * sqrtl(0.5L)) - erfcl(b * sqrtl(0.5L))) / 2;
}

/* The moments of the normal law: 1, 0, 1, 0, 3, 0, 15, ... */
static void of_law(double moment[MOMENTS_MOST + 1])
{
    for (int k = 0; k <= MOMENTS_MOST; k++)
        moment[k] = k == 0 ? 1 : k == 1 ? 0 : (k - 1) * moment[k - 2];
}

/* The moments after rounding: a 16-bit number has the probability of the interval that rounds to
 * it. The terms above 40 are below the precision of a double. */
static void of_rounded(float (*value)(uint16_t), double moment[MOMENTS_MOST + 1])
{
    long double sum[MOMENTS_MOST + 1] = {0};
    long double below = 0;
    for (uint16_t bits = 1; value(bits) < 40; bits++) {
        const long double x = value(bits), next = value((uint16_t)(bits + 1));
        const long double from = (below + x) / 2, p = 2 * probability(from, (x + next) / 2);
        for (int k = 0; k <= MOMENTS_MOST; k += 2)
            sum[k] += p * powl(x, k);
        below = x;
    }
    sum[0] += 1 - 2 * probability((long double)value(1) / 2, INFINITY);
    for (int k = 0; k <= MOMENTS_MOST; k++)
        moment[k] = (double)sum[k];
}

void moments_expected(shuf_dtype dtype, double moment[MOMENTS_MOST + 1])
{
    switch (dtype) {
    case SHUF_F16:
        of_rounded(shuf_of_f16, moment);
        break;
    case SHUF_BF16:
        of_rounded(shuf_of_bf16, moment);
        break;
    default:
        of_law(moment);
    }
}

void exact_add(struct exact_sum *s, double x)
{
    const double sum = s->sum + x;
    s->lost += fabs(s->sum) >= fabs(x) ? (s->sum - sum) + x : (x - sum) + s->sum;
    s->sum = sum;
}
