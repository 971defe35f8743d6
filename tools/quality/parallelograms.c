/* SPDX-License-Identifier: MIT
 *
 * See parallelograms.h.
 */
#include "parallelograms.h"

#include "generator.h"
#include "test.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

/* ---- Their law ---- */

/* r(x) is the number of ordered pairs of values that differ by x mod M. T is
 * the number of ordered triples a, b, c with equal steps b - a = c - b mod M. The number of ordered
 * pairs of disjoint pairs with the same difference is
 *     sum of r(x)^2  -  n (n - 1)  -  2 T,
 * and the number with opposite differences is equal to it. For an even M the difference M / 2 is
 * its own opposite. There both relations are the same, and a pair and its reverse share both
 * values. */

typedef long double real; /* with 64 bits of precision, because sums reach n^3 */

uint64_t shuf__parallelogram_modulus(uint64_t n, uint64_t modulus)
{
    assert(modulus == 0 || modulus >= n);
    return modulus == 0 || modulus > 2 * n - 1 ? 2 * n - 1 : modulus;
}

/* The sum of r(x)^2. r(x) is n - x up to x = M - n, and then constantly 2n - M. From x = n on, r(x)
 * = r(M - x). */
static real sum_of_squares(real n, real modulus)
{
    const real steps = modulus - n, flat = 2 * n - modulus;
    const real below = n - steps - 1; /* slope = 1^2 + ... + (n - 1)^2 - (1^2 + ... + below^2) */
    const real slope = (n - 1) * n * (2 * n - 1) / 6 - below * (below + 1) * (2 * below + 1) / 6;
    return 2 * slope + (flat - 1) * flat * flat;
}

/* The number of ordered triples (a, b, c) of different values with a + c = 2b mod M. If a + c is
 * even there is one b half-way. If a + c + M or a + c - M is even, there may be another b. */
static real progressions(uint64_t n, uint64_t modulus)
{
    const real even = (real)((n + 1) / 2), odd = (real)(n / 2);
    const real wrapped = (real)((2 * n - 1 - modulus) / 2);
    return even * (even - 1) + odd * (odd - 1) + 2 * wrapped * (wrapped + 1);
}

struct shuf__parallelogram_law shuf__parallelogram_law(uint64_t n, uint64_t modulus)
{
    assert(n >= 4 && modulus >= n && modulus <= 2 * n - 1);
    const real size = (real)n, triples = size * (size - 1) * (size - 2);
    const real half = modulus % 2 == 0 ? (real)(2 * n - modulus) : 0; /* r(M / 2) */
    const real line = progressions(n, modulus);
    const real equal = sum_of_squares(size, (real)modulus) - size * (size - 1) - 2 * line - half;
    const real either = 2 * equal - half * (half - 2);
    return (struct shuf__parallelogram_law){
        .equal = (double)(equal / (triples * (size - 3))),
        .either = (double)(either / (triples * (size - 3))),
        .chain = (double)(line / triples),
    };
}

struct shuf__parallelograms shuf__parallelogram_places(uint64_t n, uint64_t d)
{
    assert(d >= 1 && d < n);
    const uint64_t pairs = n - d, chains = pairs > d ? pairs - d : 0;
    return (struct shuf__parallelograms){
        .pairs = (pairs % 2 == 0 ? pairs / 2 * (pairs - 1) : (pairs - 1) / 2 * pairs) - chains,
        .chains = chains,
    };
}

double shuf__parallelograms_expected(const struct shuf__parallelogram_law *law,
                                     const struct shuf__parallelograms *places)
{
    return (double)((real)places->pairs * law->either + (real)places->chains * law->chain);
}

double shuf__parallelograms_p(const struct shuf__parallelogram_law *law,
                              const struct shuf__parallelograms *counted)
{
    const double mean = shuf__parallelograms_expected(law, counted), p = law->either;
    const double all = (double)(counted->pairs + counted->chains), pairs = sqrt(2 * all);
    const double variance = all * p * (1 - p);
    const double third =
        variance * (1 - 2 * p) + pairs * (pairs - 1) * (pairs - 2) * p * p * (1 - p);
    const double shape = 4 * variance * variance * variance / (third * third);
    const double scale = third / (2 * variance);
    if (shape > 1e6) /* GSL's gamma distribution fails here, but the law is nearly normal */
        return gsl_cdf_ugaussian_Q(((double)counted->either - 0.5 - mean) / sqrt(variance));
    const double at = (double)counted->either - 0.5 - mean + shape * scale;
    return at <= 0 ? 1 : gsl_cdf_gamma_Q(at, shape, scale);
}

struct shuf__parallelograms shuf__parallelograms_count(uint32_t n, uint64_t modulus,
                                                       const uint32_t *row, uint32_t d,
                                                       uint32_t *tally)
{
    struct shuf__parallelograms found = shuf__parallelogram_places(n, d);
    const uint32_t m = (uint32_t)modulus, half = (m - 1) / 2;
    uint64_t equal = 0, opposite = 0;
    for (uint32_t i = 0; i + d < n; i++) {
        const uint32_t x = row[i + d] - row[i];
        tally[row[i + d] < row[i] ? x + m : x]++;
    }
    for (uint32_t x = 1; x <= half; x++) {
        const uint64_t up = tally[x], down = tally[m - x];
        equal += up * up + down * down - up - down;
        opposite += up * down;
        tally[x] = tally[m - x] = 0;
    }
    if (m % 2 == 0) {
        const uint64_t same = tally[m / 2];
        equal += same * same - same;
        tally[m / 2] = 0;
    }
    found.equal = equal / 2;
    found.either = equal / 2 + opposite;
    return found;
}

/* ---- The test ---- */

/* Parallelograms (parallelograms.h) at all distances of a row. If there are too many distances,
 * each row tests some of them, and different rows test different ones. Two numbers are judged: the
 * sum over all distances, and the best distance of each row.
 *
 * The mean of the sum is exact. Its variance is measured from the rows. An exact variance would
 * depend on n, the modulus and the distances: the same four positions can be a parallelogram at two
 * distances, and parallelograms can share values.
 *
 * With few rows, the variance is computed instead. Pairs then count as independent, and a relation
 * of four positions counts as often as it occurs. This is right up to terms of order 1/n if
 * differences wrap around, and is used only then. */

enum { WORK = 1 << 20, LEAST_DISTANCES = 4, STEPS = 4, BEST = 64 * STEPS };
enum { LEAST_ROWS = 50, LEAST_REFERENCE = 200, REFERENCE_WORK = 1 << 27 };

/* The words. MODULI is the sum of the rows' moduli. Sums of differences are signed, in two's
 * complement. */
enum {
    ROWS,
    MODULI,
    PAIRS, /* the sum of their lower 32 bits, because the whole sum has more than 64 bits */
    PAIRS_HIGH,
    CHAINS,
    EITHER,
    EQUAL,
    OFF,
    SQUARES,
    EQUAL_OFF,
    EQUAL_SQUARES,
    BESTS,
    WORDS = BESTS + BEST
};

size_t shuf__parallelograms_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

uint32_t shuf__parallelogram_distances(uint32_t n)
{
    const uint32_t count = WORK / n < LEAST_DISTANCES ? LEAST_DISTANCES : WORK / n;
    return count < n - 1 ? count : n - 1;
}

uint32_t shuf__parallelogram_distance(uint32_t n, uint64_t row, uint32_t k)
{
    const uint32_t count = shuf__parallelogram_distances(n);
    return 1 + (count == n - 1 ? k : (uint32_t)((row * count + k) % (n / 2)));
}

/* The state of a row between its distances. */
struct row {
    struct shuf__parallelograms sum, best;
    double most; /* the largest deviation so far, in standard deviations */
    unsigned judged;
};

/* Adds one distance. Large distances have few pairs. Their counts are too small for a search of the
 * best distance, so only the sum has them. */
static void pass(const struct shuf__parallelogram_law *law, uint32_t n, uint32_t d,
                 const struct shuf__parallelograms *one, struct row *row)
{
    const double mean = shuf__parallelograms_expected(law, one);
    const double off = ((double)one->either - mean) / sqrt(mean);
    row->sum.pairs += one->pairs;
    row->sum.chains += one->chains;
    row->sum.equal += one->equal;
    row->sum.either += one->either;
    if (d > n / 2)
        return;
    if (row->judged++ == 0 || off > row->most) {
        row->most = off;
        row->best = *one;
    }
}

/* -log2 of the probability that the best of all distances is at least so good by chance. */
static double best_of(const struct shuf__parallelogram_law *law, const struct row *row)
{
    const double p = fmin(shuf__parallelograms_p(law, &row->best), 1 - 1e-15);
    return -log2(-expm1(row->judged * log1p(-p)));
}

/* Limits deviations to a value that chance never reaches, because sums must not overflow. */
static int64_t cut(double off)
{
    const double most = 1 << 22;
    return llround(fmin(fmax(off, -most), most));
}

static void take(const struct shuf__parallelogram_law *law, uint64_t modulus, const struct row *row,
                 uint64_t *words)
{
    const double either = shuf__parallelograms_expected(law, &row->sum);
    const double equal = (double)row->sum.pairs * law->equal + (double)row->sum.chains * law->chain;
    const int64_t off = cut((double)row->sum.either - either);
    const int64_t equal_off = cut((double)row->sum.equal - equal);
    const double step = fmin(STEPS * best_of(law, row), BEST - 1);
    words[ROWS]++;
    words[MODULI] += modulus;
    words[PAIRS] += (uint32_t)row->sum.pairs;
    words[PAIRS_HIGH] += row->sum.pairs >> 32;
    words[CHAINS] += row->sum.chains;
    words[EITHER] += row->sum.either;
    words[EQUAL] += row->sum.equal;
    words[OFF] += (uint64_t)off;
    words[SQUARES] += (uint64_t)(off * off);
    words[EQUAL_OFF] += (uint64_t)equal_off;
    words[EQUAL_SQUARES] += (uint64_t)(equal_off * equal_off);
    words[BESTS + (step > 0 ? (unsigned)step : 0)]++;
}

void shuf__parallelograms_take(uint32_t n, uint64_t modulus, uint64_t number,
                               const struct shuf__parallelograms *counted, uint64_t *words)
{
    const struct shuf__parallelogram_law law = shuf__parallelogram_law(n, modulus);
    struct row row = {0};
    for (uint32_t k = 0; k < shuf__parallelogram_distances(n); k++)
        pass(&law, n, shuf__parallelogram_distance(n, number, k), &counted[k], &row);
    take(&law, modulus, &row, words);
}

static void count_row(const struct shuf__parallelogram_law *law, uint32_t n, uint64_t modulus,
                      const uint32_t *values, uint64_t number, uint32_t *tally, uint64_t *words)
{
    struct row row = {0};
    for (uint32_t k = 0; k < shuf__parallelogram_distances(n); k++) {
        const uint32_t d = shuf__parallelogram_distance(n, number, k);
        const struct shuf__parallelograms one =
            shuf__parallelograms_count(n, modulus, values, d, tally);
        pass(law, n, d, &one, &row);
    }
    take(law, modulus, &row, words);
}

void shuf__parallelograms_add(const struct shuf__rows *rows, uint64_t *words)
{
    const uint32_t n = rows->n;
    const uint64_t modulus = shuf__parallelogram_modulus(n, rows->modulus);
    const struct shuf__parallelogram_law law = shuf__parallelogram_law(n, modulus);
    uint32_t *tally = rows->scratch;
    for (size_t i = 0; i < 2 * (size_t)n; i++)
        tally[i] = 0;
    for (size_t r = 0; r < rows->count; r++)
        count_row(&law, n, modulus, rows->row + r * n, rows->first + r, tally, words);
}

/* ---- All together ---- */

/* Judges the sum over all distances. The variance is measured from the rows' integer deviations.
 * The expected mean is exact. */
static void judge_sum(uint32_t n, uint64_t modulus, const uint64_t *words, bool either,
                      const struct shuf__parallelogram_law *law, struct shuf__findings *findings)
{
    const double rows = (double)words[ROWS], law_p = either ? law->either : law->equal;
    const long double pairs = (long double)words[PAIRS_HIGH] * 0x1p32L + (long double)words[PAIRS];
    const long double chains = (long double)words[CHAINS];
    const long double counted = (long double)words[either ? EITHER : EQUAL];
    const long double expected = pairs * law_p + chains * law->chain;
    const double off = (double)(counted - expected);
    const double share = (double)shuf__parallelogram_distances(n) / (n - 1);
    double variance = (double)(pairs + chains) * (law_p * (1 - law_p) + share * law->equal);
    double p = shuf__normal_p(off / sqrt(variance));
    if (words[ROWS] >= LEAST_ROWS) {
        const double mean = (double)(int64_t)words[either ? OFF : EQUAL_OFF] / rows;
        variance = (double)words[either ? SQUARES : EQUAL_SQUARES] - rows * mean * mean;
        const double t = off / sqrt(fmax(variance, 1e-9) * rows / (rows - 1));
        p = 2 * fmin(gsl_cdf_tdist_P(t, rows - 1), gsl_cdf_tdist_Q(t, rows - 1));
        p = fmin(p, 1);
    } else if (modulus == 2 * (uint64_t)n - 1)
        return; /* without a modulus, differences are not uniform (see the top of this file) */
    shuf__find(findings, n, (double)(counted / rows), (double)(expected / rows), p,
               either ? "equal or opposite" : "equal");
}

/* ---- The best distances ---- */

/* Judges the best distance of all rows. The test is one-sided. */
static void judge_best(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    unsigned best = BEST - 1;
    while (best > 0 && words[BESTS + best] == 0)
        best--;
    const double one = exp2(-(double)best / STEPS);
    const double p = best == 0 ? 1 : -expm1((double)words[ROWS] * log1p(-one));
    shuf__find(findings, n, (double)best / STEPS, log2((double)words[ROWS]), p,
               "best distance, bits");
}

/* Computes the same numbers for exact shuffles. The seed of these shuffles is made from the counts,
 * because a fixed seed could favour or harm all runs in the same way. */
static uint64_t make_reference(uint32_t n, uint64_t modulus, uint64_t rows,
                               const struct shuf__parallelogram_law *law, uint64_t seed,
                               uint64_t *words)
{
    _Alignas(64) unsigned char state[SHUF__GENERATOR_STATE] = {0};
    uint32_t *values = malloc(n * sizeof *values), *tally = calloc(2 * (size_t)n, sizeof *tally);
    for (uint64_t r = 0; values && tally && r < rows; r++) {
        shuf__generator_fisher_yates.make(state, n, seed, r, 0);
        shuf__generator_fisher_yates.fill(state, n, values);
        count_row(law, n, modulus, values, r, tally, words);
    }
    free(values);
    free(tally);
    return words[ROWS];
}

/* Tests by chi-squared whether two samples have the same law. Cells are joined until both samples
 * have enough in each. */
static struct shuf__chi_squared compare(const uint64_t *a, const uint64_t *b, double a_all,
                                        double b_all)
{
    struct shuf__chi_squared x = {0, -1};
    double in_a = 0, in_b = 0, left = a_all + b_all;
    for (unsigned k = 0; k < BEST; k++) {
        in_a += (double)a[k];
        in_b += (double)b[k];
        const double both = in_a + in_b, share = a_all / (a_all + b_all);
        const double least = both * fmin(share, 1 - share);
        const double rest = (left - both) * fmin(share, 1 - share);
        if (k + 1 < BEST && (least < SHUF__LEAST_EXPECTED || rest < SHUF__LEAST_EXPECTED))
            continue;
        const double off = in_a - both * share;
        if (both > 0) {
            x.sum += off * off / (both * share * (1 - share));
            x.dof++;
        }
        left -= both;
        in_a = in_b = 0;
    }
    return x;
}

static void judge_bests(uint32_t n, uint64_t modulus, const uint64_t *words,
                        const struct shuf__parallelogram_law *law, struct shuf__findings *findings)
{
    const uint64_t most = REFERENCE_WORK / ((uint64_t)shuf__parallelogram_distances(n) * n);
    const uint64_t reference_rows = words[ROWS] < most ? words[ROWS] : most;
    uint64_t reference[WORDS] = {0};
    if (reference_rows < LEAST_REFERENCE ||
        make_reference(n, modulus, reference_rows, law, words[EITHER] + words[SQUARES], reference) <
            reference_rows)
        return;
    shuf__find_chi_squared(
        findings, n,
        compare(words + BESTS, reference + BESTS, (double)words[ROWS], (double)reference_rows),
        "best distances");
}

void shuf__parallelograms_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const uint64_t modulus = words[MODULI] / words[ROWS];
    const struct shuf__parallelogram_law law = shuf__parallelogram_law(n, modulus);
    judge_sum(n, modulus, words, true, &law, findings);
    judge_sum(n, modulus, words, false, &law, findings);
    if (modulus < 2 * (uint64_t)n - 1) /* with 2n - 1, differences are not uniform: a longer tail */
        judge_best(n, words, findings);
    judge_bests(n, modulus, words, &law, findings);
}
