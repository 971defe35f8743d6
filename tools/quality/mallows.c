/* SPDX-License-Identifier: MIT
 *
 * The maximum mean discrepancy between the rows and uniform permutations, as in Mitchell, Stokes,
 * Frank, Holmes: "Bandwidth-optimal random shuffling for GPUs" (arXiv 2106.06161). It uses the
 * Mallows kernel of two permutations, K = exp(-lambda * discordant pairs / C(n, 2)). If one of two
 * permutations is uniform, the mean of K is a known constant. So the squared discrepancy is the
 * mean of K over independent pairs of rows, minus this constant.
 *
 * Each row is in only one pair, so the pairs are independent. There are two acceptance regions:
 *
 * - Hoeffding's region follows from 0 <= K <= 1. It is certain but wide.
 * - The normal region follows from the variance of K, which is known exactly, because K^2 is the
 *   kernel of 2 lambda. The verdict uses this region.
 */
#include "mallows.h"

#include "inversions.h"
#include "laws.h"
#include "test.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* The words: the number of pairs, and the sum of K in units of 2^-36. The sum is an integer, so the
 * order of additions does not matter. */
enum { PAIRS, SUM, WORDS };
static const double unit = 0x1p36;

enum { LEAST_PAIRS = 25 };

uint64_t shuf__discordant(uint32_t n, const uint32_t *one, const uint32_t *other, uint32_t *scratch)
{
    for (uint32_t i = 0; i < n; i++)
        scratch[one[i]] = other[i];
    return shuf__inversions(n, scratch, scratch + n);
}

double shuf__mallows_kernel(uint32_t n, uint64_t discordant)
{
    return exp(-SHUF__MALLOWS_LAMBDA * (double)discordant / (0.5 * n * (n - 1.0)));
}

size_t shuf__mallows_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

void shuf__mallows_add(const struct shuf__rows *rows, uint64_t *words)
{
    const uint32_t n = rows->n;
    for (size_t r = 0; r + 2 <= rows->count; r += 2) {
        const uint32_t *row = rows->row + r * n;
        const uint64_t discordant = shuf__discordant(n, row, row + n, rows->scratch);
        words[SUM] += (uint64_t)(unit * shuf__mallows_kernel(n, discordant) + 0.5);
        words[PAIRS]++;
    }
}

void shuf__mallows_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const double mean = shuf__law_mallows(n, SHUF__MALLOWS_LAMBDA);
    const double square = shuf__law_mallows(n, 2 * SHUF__MALLOWS_LAMBDA);
    const double pairs = (double)words[PAIRS], alpha = findings->alpha;
    if (words[PAIRS] < LEAST_PAIRS)
        return;
    const double deviation = sqrt((square - mean * mean) / pairs);
    const double off = (double)words[SUM] / unit / pairs - mean;
    const double hoeffding = sqrt(log(2 / alpha) / (2 * pairs));
    const double normal = deviation * gsl_cdf_ugaussian_Qinv(alpha / 2);
    struct shuf__finding *f = shuf__find(findings, n, off, 0, shuf__normal_p(off / deviation),
                                         "lambda %g", SHUF__MALLOWS_LAMBDA);
    f->has_regions = true;
    f->hoeffding =
        (struct shuf__region){-hoeffding, hoeffding, fmin(1, 2 * exp(-2 * pairs * off * off))};
    f->normal = (struct shuf__region){-normal, normal, f->p};
}
