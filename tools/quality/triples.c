/* SPDX-License-Identifier: MIT
 *
 * Second differences f(i) - 2 f(i + 1) + f(i + 2) mod n of three neighbours. No two triples
 * overlap. A family of permutations may be pairwise independent by construction. A test of two
 * values at a time then finds no fault, but this test may.
 *
 * The law of each difference is exact (shuf__law_second_difference). The triples of a row take
 * their values without replacement, so they are slightly dependent. Up to n = 257 the code computes
 * the exact covariance of their counts, and the statistic is the quadratic form with its inverse.
 * For a larger n it treats the triples as independent. This neglects a part of order 1/n, which
 * changes the statistic by less than a fiftieth of its standard deviation.
 */
#include "laws.h"
#include "test.h"

#include <assert.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_eigen.h>
#include <math.h>
#include <stdlib.h>

enum { EXACT_N = 257, PARTS = 64, LEAST_IN_CELL = 25 };

/* The words: the number of triples; the number of ordered pairs of triples in the same row; the
 * cells. */
enum { TRIPLES, PAIRS, CELLS, WORDS = CELLS + 1 + PARTS };

size_t shuf__second_differences_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

/* Cell 0 is for the difference 0, which every map a x + b gives. The other cells share the rest. */
static inline uint32_t cell_of(const struct shuf__parts *parts, uint32_t t)
{
    return t == 0 ? 0 : 1 + shuf__part(parts, t - 1);
}

static inline uint32_t second_difference(uint32_t n, const uint32_t *v)
{
    const uint32_t sum = v[0] + v[2] + 2 * (n - v[1]); /* 2 .. 4n - 2 */
    const uint32_t half = sum >= 2 * n ? sum - 2 * n : sum;
    return half >= n ? half - n : half;
}

void shuf__second_differences_add(const struct shuf__rows *rows, uint64_t *words)
{
    const uint32_t n = rows->n;
    const struct shuf__parts parts = shuf__parts_of(n - 1, PARTS);
    for (size_t r = 0; r < rows->count; r++) {
        const uint32_t *row = rows->row + r * n;
        const uint32_t start = (uint32_t)((rows->first + r) % (n < 5 ? n - 2 : 3));
        const uint64_t triples = (n - start) / 3;
        words[TRIPLES] += triples;
        words[PAIRS] += triples * (triples - 1);
        for (uint32_t i = start; i + 3 <= n; i += 3)
            words[CELLS + cell_of(&parts, second_difference(n, row + i))]++;
    }
}

/* ---- Two triples of one row ---- */

static uint32_t mod(int64_t x, uint32_t n)
{
    return (uint32_t)((x % n + n) % n);
}

/* m[t][d] counts the triples (a, b, c) with second difference t in which two members are 0 and d.
 * It is the sum over the choices (a, b), (b, c) and (a, c) of these two members. */
static void two_members(uint32_t n, gsl_matrix *m)
{
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t d = 1; d < n; d++) {
            const uint32_t after = mod((int64_t)t + 2 * d, n); /* a = 0, b = d: c */
            const uint32_t before = mod((int64_t)t - d, n);    /* b = 0, c = d: a */
            double count = (after != 0 && after != d) + (before != 0 && before != d);
            const uint32_t twice = mod((int64_t)d - t, n); /* a = 0, c = d: 2 b */
            for (uint32_t b = twice / 2; n % 2 == 0 && twice % 2 == 0 && b < n; b += n / 2)
                count += b != 0 && b != d;
            if (n % 2 == 1) {
                const uint32_t b = twice % 2 == 0 ? twice / 2 : (uint32_t)((twice + n) / 2);
                count += b != 0 && b != d;
            }
            gsl_matrix_set(m, t, d, count);
        }
}

/* For each triple and each order of its members, subtracts the pair of their second differences. */
static void subtract_same_members(uint32_t n, gsl_matrix *pairs)
{
    for (uint32_t x = 1; x < n; x++)
        for (uint32_t y = 1; y < n; y++) {
            const uint32_t t = (x + y) % n; /* the second difference of (x, 0, y) */
            const uint32_t other[3] = {t, mod((int64_t)y - 2 * x, n), mod((int64_t)x - 2 * y, n)};
            for (int i = 0; i < 3 && x != y; i++)
                *gsl_matrix_ptr(pairs, t, other[i]) -= 2;
        }
}

/* pairs[t][u] is the probability that two triples of six different values have the second
 * differences t and u. It is computed by inclusion and exclusion: the count of all pairs of
 * triples, minus those that share one value, plus those that share two, minus those that share
 * three. Each count is multiplied by the number of ways to choose the shared values. All counts are
 * divided by n, because only differences matter. */
static gsl_matrix *pair_law(uint32_t n)
{
    gsl_matrix *pairs = gsl_matrix_alloc(n, n), *two = gsl_matrix_calloc(n, n);
    double ways = n - 1.0;
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t u = 0; u < n; u++)
            gsl_matrix_set(pairs, t, u,
                           (n - 9.0) * (double)shuf__law_second_difference(n, t) *
                               (double)shuf__law_second_difference(n, u));
    two_members(n, two);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 2, two, two, 1, pairs);
    subtract_same_members(n, pairs);
    for (uint32_t k = 2; k < 6; k++)
        ways *= n - (double)k;
    gsl_matrix_scale(pairs, 1 / ways);
    gsl_matrix_free(two);
    return pairs;
}

/* ---- The statistic ---- */

struct cells {
    struct shuf__parts parts;
    uint32_t count;
    double p[1 + PARTS];
};

static struct cells cells_of(uint32_t n)
{
    struct cells cells = {.parts = shuf__parts_of(n - 1, PARTS)};
    const double ways = (n - 1.0) * (n - 2.0);
    cells.count = 1 + cells.parts.cells;
    for (uint32_t t = 0; t < n; t++)
        cells.p[cell_of(&cells.parts, t)] += (double)shuf__law_second_difference(n, t) / ways;
    return cells;
}

/* The covariance of the counts of all rows. */
static gsl_matrix *covariance(uint32_t n, const struct cells *cells, double triples, double pairs)
{
    gsl_matrix *sum = gsl_matrix_calloc(cells->count, cells->count);
    for (uint32_t k = 0; k < cells->count; k++) {
        *gsl_matrix_ptr(sum, k, k) += triples * cells->p[k];
        for (uint32_t l = 0; l < cells->count; l++)
            *gsl_matrix_ptr(sum, k, l) -= (triples + pairs) * cells->p[k] * cells->p[l];
    }
    if (pairs == 0)
        return sum;
    gsl_matrix *law = pair_law(n);
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t u = 0; u < n; u++)
            *gsl_matrix_ptr(sum, cell_of(&cells->parts, t), cell_of(&cells->parts, u)) +=
                pairs * gsl_matrix_get(law, t, u);
    gsl_matrix_free(law);
    return sum;
}

/* The quadratic form off' * matrix^-1 * off, on the subspace where the matrix has an inverse.
 * Overwrites `matrix`. */
static struct shuf__chi_squared quadratic_form(gsl_matrix *matrix, const gsl_vector *off)
{
    const size_t size = off->size;
    gsl_eigen_symmv_workspace *work = gsl_eigen_symmv_alloc(size);
    gsl_matrix *vectors = gsl_matrix_alloc(size, size);
    gsl_vector *values = gsl_vector_alloc(size), *along = gsl_vector_alloc(size);
    struct shuf__chi_squared x = {0, 0};
    gsl_eigen_symmv(matrix, values, vectors, work);
    gsl_blas_dgemv(CblasTrans, 1, vectors, off, 0, along);
    const double least = 1e-9 * gsl_vector_max(values);
    for (size_t i = 0; i < size; i++) {
        const double part = gsl_vector_get(along, i), variance = gsl_vector_get(values, i);
        if (variance <= least)
            continue;
        x.sum += part * part / variance;
        x.dof++;
    }
    gsl_vector_free(along);
    gsl_vector_free(values);
    gsl_matrix_free(vectors);
    gsl_eigen_symmv_free(work);
    return x;
}

void shuf__second_differences_judge(uint32_t n, const uint64_t *words,
                                    struct shuf__findings *findings)
{
    const struct cells cells = cells_of(n);
    const double triples = (double)words[TRIPLES];
    if (triples < LEAST_IN_CELL * (double)cells.count)
        return;
    gsl_matrix *matrix = covariance(n, &cells, triples, n <= EXACT_N ? (double)words[PAIRS] : 0);
    gsl_vector *off = gsl_vector_alloc(cells.count);
    for (uint32_t k = 0; k < cells.count; k++)
        gsl_vector_set(off, k, (double)words[CELLS + k] - triples * cells.p[k]);
    shuf__find_chi_squared(findings, n, quadratic_form(matrix, off), "of 3 neighbours");
    gsl_vector_free(off);
    gsl_matrix_free(matrix);
}
