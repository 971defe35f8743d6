/* SPDX-License-Identifier: MIT
 *
 * See laws.h.
 */
#include "laws.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- Inversions ---- */

/* The code sorts the values and counts inversions meanwhile. A merge sort would mispredict half of
 * its branches, so this sort has no branches. It partitions the values by one bit after the other,
 * from the highest bit on, and keeps the order of values with equal bits. Each value whose bit is 0
 * makes an inversion with every earlier value whose bit is 1. The values are a permutation, so the
 * values with the same upper bits fill exactly the positions with these upper bits. For the last
 * six bits the code has a 64-bit mask of the values that it has seen. */

enum { WORD_BITS = 6 };

/* Partitions one group of `size` values, from `from` to `to`. The values whose bit is 1 go to place
 * `ones` and the places after it. */
static inline uint64_t part_group(const uint32_t *from, uint32_t *to, size_t size, size_t ones,
                                  unsigned bit)
{
    uint64_t inversions = 0;
    size_t zero = 0, one = ones;
    for (size_t i = 0; i < size; i++) {
        const size_t value = from[i], set = value >> bit & 1, is_one = 0 - set;
        to[zero ^ ((zero ^ one) & is_one)] = (uint32_t)value;
        inversions += one & ~is_one;
        one += set;
        zero += set ^ 1;
    }
    return inversions - zero * ones; /* the loop added `ones` too often, once for each zero */
}

static uint64_t part_all(uint32_t n, const uint32_t *from, uint32_t *to, unsigned bit)
{
    const size_t half = (size_t)1 << bit;
    uint64_t inversions = 0;
    for (size_t start = 0; start < n; start += 2 * half) {
        const size_t size = n - start < 2 * half ? n - start : 2 * half;
        inversions += part_group(from + start, to + start, size, half, bit);
    }
    return inversions;
}

static inline __attribute__((always_inline)) uint64_t count_words(uint32_t n,
                                                                  const uint32_t *values)
{
    uint64_t inversions = 0;
    for (size_t start = 0; start < n; start += 64) {
        const size_t end = n - start < 64 ? n : start + 64;
        uint64_t seen = 0;
        for (size_t i = start; i < end; i++) {
            const unsigned low = values[i] & 63;
            inversions += (unsigned)__builtin_popcountll(seen >> low);
            seen |= UINT64_C(1) << low;
        }
    }
    return inversions;
}

#ifdef __x86_64__
__attribute__((target("popcnt"))) static uint64_t count_words_popcnt(uint32_t n,
                                                                     const uint32_t *values)
{
    return count_words(n, values);
}
#endif

static uint64_t within_words(uint32_t n, const uint32_t *values)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("popcnt"))
        return count_words_popcnt(n, values);
#endif
    return count_words(n, values);
}

uint64_t shuf__inversions(uint32_t n, uint32_t *values, uint32_t *scratch)
{
    unsigned bits = WORD_BITS;
    uint64_t inversions = 0;
    while ((n - 1) >> bits != 0)
        bits++;
    for (unsigned bit = bits; bit-- > WORD_BITS;) {
        inversions += part_all(n, values, scratch, bit);
        uint32_t *parted = scratch;
        scratch = values;
        values = parted;
    }
    return inversions + within_words(n, values);
}

/* ---- Laws ---- */

/* The recurrences use probabilities instead of counts, so no number overflows. All terms are
 * positive, so no digits are lost by cancellation. */

/* From these n on the normal law is used. No practical sample is large enough to show its error. */
enum { DESCENTS_EXACT = 1024, INVERSIONS_EXACT = 128 };
enum { FIXED_POINTS = 40, CYCLES = 128 }; /* more have a probability below 1e-20 for n < 2^32 */

/* P(k) = D(n - k) / (k! (n - k)!), where D(m) / m! = sum over j <= m of (-1)^j / j!. */
static void fixed_points_exact(uint32_t n, uint64_t size, long double *p)
{
    long double deranged[FIXED_POINTS + 2], term = 1, sum = 0, factorial = 1;
    const uint32_t last = n < FIXED_POINTS + 1 ? n : FIXED_POINTS + 1;
    for (uint32_t j = 0; j <= last; j++) {
        sum += term;
        deranged[j] = sum;
        term /= -(long double)(j + 1);
    }
    for (uint64_t k = 0; k < size; k++) {
        factorial *= k > 0 ? (long double)k : 1;
        p[k] = k > n ? 0 : deranged[n - k < last ? n - k : last] / factorial;
    }
}

/* Element k closes a cycle with probability 1/k, independently of the others. */
static void cycles_exact(uint32_t n, uint64_t size, long double *p)
{
    memset(p, 0, size * sizeof *p);
    p[0] = 1;
    for (uint64_t k = 1; k <= n; k++)
        for (uint64_t c = k < size ? k : size - 1; c != UINT64_MAX; c--)
            p[c] = (p[c] * (long double)(k - 1) + (c > 0 ? p[c - 1] : 0)) / (long double)k;
}

/* The Eulerian numbers divided by n!. The recurrence inserts the largest element into one of the
 * gaps. */
static void descents_exact(uint32_t n, uint64_t size, long double *p)
{
    memset(p, 0, size * sizeof *p);
    p[0] = 1;
    for (uint64_t m = 2; m <= n; m++)
        for (uint64_t k = m - 1; k != UINT64_MAX; k--)
            p[k] = ((long double)(k + 1) * p[k] + (k > 0 ? (long double)(m - k) * p[k - 1] : 0)) /
                   (long double)m;
}

/* The Mahonian numbers divided by n!. Element m has 0 to m - 1 inversions with the elements before
 * it, all equally likely. */
static void inversions_exact(uint32_t n, uint64_t size, long double *p)
{
    long double *before = calloc(size, sizeof *before);
    assert(before);
    memset(p, 0, size * sizeof *p);
    p[0] = 1;
    for (uint64_t m = 2; m <= n; m++) {
        const uint64_t most = m * (m - 1) / 2, half = most / 2;
        long double window = 0;
        memcpy(before, p, size * sizeof *p);
        for (uint64_t k = 0; k <= half; k++) {
            window += before[k] - (k >= m ? before[k - m] : 0);
            p[k] = window / (long double)m;
        }
        for (uint64_t k = half + 1; k <= most; k++) /* symmetric; a difference would lose digits */
            p[k] = p[most - k];
    }
    free(before);
}

static struct shuf__law with_exact(struct shuf__law law, uint64_t size,
                                   void (*exact)(uint32_t n, uint64_t size, long double *p))
{
    law.low = 0;
    law.size = size;
    law.width = (size + SHUF__LAW_CELLS - 1) / SHUF__LAW_CELLS;
    law.exact = exact;
    return law;
}

static struct shuf__law as_normal(struct shuf__law law)
{
    const double deviation = sqrt(law.variance);
    law.low = (int64_t)floor(law.mean - 8 * deviation);
    law.width = (uint64_t)ceil(16 * deviation / SHUF__LAW_CELLS);
    return law;
}

struct shuf__law shuf__law_fixed_points(uint32_t n)
{
    const struct shuf__law law = {.mean = 1, .variance = 1, .cumulant = 1}; /* those of Poisson */
    return with_exact(law, n < FIXED_POINTS ? n + 1 : FIXED_POINTS + 1, fixed_points_exact);
}

struct shuf__law shuf__law_cycles(uint32_t n)
{
    struct shuf__law law = {0};
    for (uint32_t k = n; k > 0; k--) {
        const double variance = (1.0 - 1.0 / k) / k; /* of whether element k closes a cycle */
        law.mean += 1.0 / k;
        law.variance += variance;
        law.cumulant += variance * (1 - 6 * variance);
    }
    return with_exact(law, n < CYCLES ? n + 1 : CYCLES + 1, cycles_exact);
}

/* The number of descents has the same law as the integer part of a sum of n uniform numbers of [0,
 * 1) (Stanley: "Eulerian partitions of a unit hypercube", 1977). Its first n cumulants are those of
 * a sum of n + 1 uniform numbers. */
struct shuf__law shuf__law_descents(uint32_t n)
{
    const struct shuf__law law = {
        .mean = (n - 1) / 2.0, .variance = (n + 1.0) / 12, .cumulant = -(n + 1.0) / 120};
    return n <= DESCENTS_EXACT ? with_exact(law, n, descents_exact) : as_normal(law);
}

/* The inverse of a uniformly random permutation is uniformly random too. */
struct shuf__law shuf__law_inverse_descents(uint32_t n)
{
    return shuf__law_descents(n);
}

/* The sum of independent uniform numbers of 0 .. k - 1, for k = 1 .. n. */
struct shuf__law shuf__law_inversions(uint32_t n)
{
    const double m = n, fourths = m * (m + 1) * (2 * m + 1) * (3 * m * m + 3 * m - 1) / 30;
    const struct shuf__law law = {.mean = m * (m - 1) / 4,
                                  .variance = m * (m - 1) * (2 * m + 5) / 72,
                                  .cumulant = -(fourths - m) / 120};
    if (n > INVERSIONS_EXACT)
        return as_normal(law);
    return with_exact(law, (uint64_t)n * (n - 1) / 2 + 1, inversions_exact);
}

unsigned shuf__law_cell(const struct shuf__law *law, uint64_t value)
{
    const int64_t above = (int64_t)value - law->low;
    if (above < 0)
        return 0;
    const uint64_t cell = (uint64_t)above / law->width;
    return cell < SHUF__LAW_CELLS ? (unsigned)cell : SHUF__LAW_CELLS - 1;
}

static void exact_cells(const struct shuf__law *law, uint32_t n, double p[SHUF__LAW_CELLS])
{
    long double *of_value = calloc(law->size, sizeof *of_value);
    long double cell[SHUF__LAW_CELLS] = {0};
    assert(of_value);
    law->exact(n, law->size, of_value);
    for (uint64_t value = 0; value < law->size; value++)
        cell[shuf__law_cell(law, value)] += of_value[value];
    for (unsigned k = 0; k < SHUF__LAW_CELLS; k++)
        p[k] = (double)cell[k];
    free(of_value);
}

/* The Edgeworth series to the fourth cumulant: a correction of the normal distribution, for a
 * symmetric law of integers. The probability of an integer k stands for the interval from k - 1/2
 * to k + 1/2. Sheppard's corrections allow for this: they change the cumulants by 1/12 and -1/120.
 */
static double below(const struct shuf__law *law, double half)
{
    const double variance = law->variance - 1.0 / 12, cumulant = law->cumulant + 1.0 / 120;
    const double x = (half - law->mean) / sqrt(variance), excess = cumulant / (variance * variance);
    const double density = exp(-x * x / 2) / sqrt(2 * M_PI);
    return gsl_cdf_ugaussian_P(x) - excess / 24 * (x * x * x - 3 * x) * density;
}

void shuf__law_cells(const struct shuf__law *law, uint32_t n, double p[SHUF__LAW_CELLS])
{
    if (law->exact) {
        exact_cells(law, n, p);
        return;
    }
    double before = 0;
    for (unsigned k = 0; k < SHUF__LAW_CELLS; k++) {
        const double end = (double)law->low + (double)((k + 1) * law->width) - 0.5;
        const double now = k + 1 < SHUF__LAW_CELLS ? below(law, end) : 1;
        p[k] = now > before ? now - before : 0;
        before = now > before ? now : before;
    }
}

/* The product over i of (1 - q^i) / (i (1 - q)), with q = exp(-lambda / C(n, 2)) (Mallows:
 * "Non-null ranking models", Biometrika 44, 1957). */
double shuf__law_mallows(uint32_t n, double lambda)
{
    const long double theta = lambda / (0.5L * n * (n - 1.0L));
    const long double first = -expm1l(-theta);
    long double sum = 0;
    for (uint32_t i = 2; i <= n; i++)
        sum += logl(-expm1l(-theta * i) / (i * first));
    return (double)expl(sum);
}

/* x = a - b and y = c - b are two different numbers other than 0, and x + y = t. So x may be any
 * number except 0, t, and the solutions of 2x = t. */
uint64_t shuf__law_second_difference(uint32_t n, uint32_t t)
{
    if (n % 2 == 1)
        return t == 0 ? n - 1 : n - 3;
    return t == 0 || t % 2 == 1 ? n - 2 : n - 4;
}
