/* SPDX-License-Identifier: MIT
 *
 * See parallelograms.h. r(x) is the number of ordered pairs of values that differ by x mod M. T is
 * the number of ordered triples a, b, c with equal steps b - a = c - b mod M. The number of ordered
 * pairs of disjoint pairs with the same difference is
 *     sum of r(x)^2  -  n (n - 1)  -  2 T,
 * and the number with opposite differences is equal to it. For an even M the difference M / 2 is
 * its own opposite. There both relations are the same, and a pair and its reverse share both
 * values.
 */
#include "parallelograms.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

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
