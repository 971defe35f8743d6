/* SPDX-License-Identifier: MIT
 *
 * Tests by a number of each row: fixed points, cycles, descents, inversions, and the Mallows kernel
 * of two rows.
 */
#include "laws.h"
#include "test.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

/* ---- Counts in one row ---- */

/* Fixed points, cycles, descents, inversions. A row gives one number of each kind, so the
 * observations are independent. Their law is known (laws.h). A row is an even permutation if n -
 * cycles is even.
 *
 * Pearson's test judges the distribution of each number. Tests of its mean and of its variance need
 * fewer rows to detect a small change of these. */

/* The words, with off = value - floor(mean): the number of rows; the sum of off mod 2^64; the cells
 * of the law; the sum of off^2. The last sum may have 110 bits, so its 32-bit parts have separate
 * sums. */
enum { SQUARE_PARTS = 4 };
enum {
    ROWS,
    COUNTS_SUM,
    CELLS,
    SQUARES = CELLS + SHUF__LAW_CELLS,
    COUNTS_WORDS = SQUARES + SQUARE_PARTS
};

/* The least numbers of rows for the tests of the mean and of the variance: with fewer rows, the
 * laws of these tests do not hold. Fixed points and cycles have skew distributions, and need more
 * rows. */
struct least_rows {
    uint64_t mean, variance;
};

static const struct least_rows symmetric = {25, 1000}, skew = {1000, 10000};

/* The formulas of the fourth cumulants are valid from this n on. */
enum { VARIANCE_N = 4 };

static void add_value(const struct shuf__law *law, uint64_t value, uint64_t *words)
{
    const int64_t off = (int64_t)value - (int64_t)law->mean;
    unsigned __int128 square = (unsigned __int128)((__int128)off * off);
    words[ROWS]++;
    words[COUNTS_SUM] += (uint64_t)off;
    words[CELLS + shuf__law_cell(law, value)]++;
    for (int part = 0; part < SQUARE_PARTS; part++, square >>= 32)
        words[SQUARES + part] += (uint32_t)square;
}

static void add_values(const struct shuf__rows *rows, const struct shuf__law *law,
                       uint64_t (*value_of)(const struct shuf__rows *, const uint32_t *row),
                       uint64_t *words)
{
    for (size_t r = 0; r < rows->count; r++)
        add_value(law, value_of(rows, rows->row + r * rows->n), words);
}

static void judge_mean(uint32_t n, const struct shuf__law *law, const uint64_t *words,
                       struct shuf__findings *findings)
{
    const double rows = (double)words[ROWS], expected = law->mean - floor(law->mean);
    const double mean = (double)(int64_t)words[COUNTS_SUM] / rows;
    const double z = (mean - expected) / sqrt(law->variance / rows);
    shuf__find(findings, n, floor(law->mean) + mean, law->mean, shuf__normal_p(z), "mean");
}

/* Judges the variance about the known mean. The square of an offset has the variance v = cumulant +
 * 2 variance^2. So the sum of squares is like a chi-squared number with 2 variance^2 / v degrees of
 * freedom for each row. The cube root of such a number is nearly normal (Wilson, Hilferty: "The
 * distribution of chi-square", PNAS 17, 1931). */
static void judge_variance(uint32_t n, const struct shuf__law *law, const uint64_t *words,
                           struct shuf__findings *findings)
{
    const double rows = (double)words[ROWS], rest = law->mean - floor(law->mean);
    const double square = law->variance * law->variance;
    const double ninths = (law->cumulant + 2 * square) / (9 * square * rows);
    double sum = 0;
    for (int part = SQUARE_PARTS; part-- > 0;)
        sum = sum * 0x1p32 + (double)words[SQUARES + part];
    const double observed =
        sum / rows - 2 * rest * ((double)(int64_t)words[COUNTS_SUM] / rows) + rest * rest;
    const double z = (cbrt(fmax(observed, 0) / law->variance) - (1 - ninths)) / sqrt(ninths);
    shuf__find(findings, n, observed, law->variance, shuf__normal_p(z), "variance");
}

static void judge(uint32_t n, const struct shuf__law *law, const struct least_rows *least,
                  const uint64_t *words, struct shuf__findings *findings)
{
    double p[SHUF__LAW_CELLS];
    shuf__law_cells(law, n, p);
    shuf__find_chi_squared(findings, n, shuf__pearson(words + CELLS, p, SHUF__LAW_CELLS),
                           "distribution");
    if (words[ROWS] >= least->mean)
        judge_mean(n, law, words, findings);
    if (words[ROWS] >= least->variance && n >= VARIANCE_N)
        judge_variance(n, law, words, findings);
}

#define FAMILY(name, least)                                                                       \
    size_t shuf__##name##_words(uint32_t n)                                                       \
    {                                                                                             \
        (void)n;                                                                                  \
        return COUNTS_WORDS;                                                                      \
    }                                                                                             \
    void shuf__##name##_add(const struct shuf__rows *rows, uint64_t *words)                       \
    {                                                                                             \
        const struct shuf__law law = shuf__law_##name(rows->n);                                   \
        add_values(rows, &law, count_##name, words);                                              \
    }                                                                                             \
    void shuf__##name##_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings) \
    {                                                                                             \
        const struct shuf__law law = shuf__law_##name(n);                                         \
        judge(n, &law, least, words, findings);                                                   \
    }

static uint64_t count_fixed_points(const struct shuf__rows *rows, const uint32_t *row)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        count += row[i] == i;
    return count;
}

static uint64_t count_descents(const struct shuf__rows *rows, const uint32_t *row)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < rows->n; i++)
        count += row[i] < row[i - 1];
    return count;
}

/* Counts the values v that stand before v - 1. */
static uint64_t count_inverse_descents(const struct shuf__rows *rows, const uint32_t *row)
{
    uint32_t *position = rows->scratch, count = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        position[row[i]] = i;
    for (uint32_t v = 1; v < rows->n; v++)
        count += position[v] < position[v - 1];
    return count;
}

static uint64_t count_inversions(const struct shuf__rows *rows, const uint32_t *row)
{
    memcpy(rows->scratch, row, rows->n * sizeof *row);
    return shuf__inversions(rows->n, rows->scratch, rows->scratch + rows->n);
}

/* Follows each cycle from its least element. `left` has a bit for each element not yet seen. */
static uint32_t cycles_of_word(uint32_t n, const uint32_t *row)
{
    uint64_t left = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    uint32_t count = 0;
    for (; left != 0; count++) {
        uint32_t x = (uint32_t)__builtin_ctzll(left);
        for (; left >> x & 1; x = row[x])
            left &= ~(UINT64_C(1) << x);
    }
    return count;
}

static uint64_t count_cycles(const struct shuf__rows *rows, const uint32_t *row)
{
    uint32_t *seen = rows->scratch, count = 0;
    if (rows->n <= 64)
        return cycles_of_word(rows->n, row);
    memset(seen, 0, (rows->n / 32 + 1) * sizeof *seen);
    for (uint32_t start = 0; start < rows->n; start++) {
        if (seen[start / 32] >> start % 32 & 1)
            continue;
        count++;
        for (uint32_t x = start; !(seen[x / 32] >> x % 32 & 1); x = row[x])
            seen[x / 32] |= UINT32_C(1) << x % 32;
    }
    return count;
}

FAMILY(fixed_points, &skew);
FAMILY(descents, &symmetric);
FAMILY(inverse_descents, &symmetric);
FAMILY(inversions, &symmetric);

/* The last word counts the rows with an even permutation. */
size_t shuf__cycles_words(uint32_t n)
{
    (void)n;
    return COUNTS_WORDS + 1;
}

void shuf__cycles_add(const struct shuf__rows *rows, uint64_t *words)
{
    const struct shuf__law law = shuf__law_cycles(rows->n);
    for (size_t r = 0; r < rows->count; r++) {
        const uint64_t cycles = count_cycles(rows, rows->row + r * rows->n);
        add_value(&law, cycles, words);
        words[COUNTS_WORDS] += (rows->n - cycles) % 2 == 0;
    }
}

void shuf__cycles_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct shuf__law law = shuf__law_cycles(n);
    const uint64_t rows = words[ROWS], even = words[COUNTS_WORDS];
    judge(n, &law, &skew, words, findings);
    shuf__find(findings, n, (double)even, (double)rows / 2, shuf__coin_p(even, rows), "parity");
}

/* ---- The Mallows kernel ---- */

/* The maximum mean discrepancy between the rows and uniform permutations, as in Mitchell, Stokes,
 * Frank, Holmes: "Bandwidth-optimal random shuffling for GPUs" (arXiv 2106.06161). It uses the
 * Mallows kernel of two permutations, K = exp(-lambda * discordant pairs / C(n, 2)). If one of two
 * permutations is uniform, the mean of K is a known constant. So the squared discrepancy is the
 * mean of K over independent pairs of rows, minus this constant.
 *
 * Each row is in only one pair, so the pairs are independent. There are two acceptance regions:
 *
 * - Hoeffding's region follows from 0 <= K <= 1. It is certain but wide.
 * - The normal region follows from the variance of K, which is known exactly, because K^2 is the
 *   kernel of 2 lambda. The verdict uses this region. */

/* The words: the number of pairs, and the sum of K in units of 2^-36. The sum is an integer, so the
 * order of additions does not matter. */
enum { PAIRS, MALLOWS_SUM, MALLOWS_WORDS };
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
    return MALLOWS_WORDS;
}

void shuf__mallows_add(const struct shuf__rows *rows, uint64_t *words)
{
    const uint32_t n = rows->n;
    for (size_t r = 0; r + 2 <= rows->count; r += 2) {
        const uint32_t *row = rows->row + r * n;
        const uint64_t discordant = shuf__discordant(n, row, row + n, rows->scratch);
        words[MALLOWS_SUM] += (uint64_t)(unit * shuf__mallows_kernel(n, discordant) + 0.5);
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
    const double off = (double)words[MALLOWS_SUM] / unit / pairs - mean;
    const double hoeffding = sqrt(log(2 / alpha) / (2 * pairs));
    const double normal = deviation * gsl_cdf_ugaussian_Qinv(alpha / 2);
    struct shuf__finding *f = shuf__find(findings, n, off, 0, shuf__normal_p(off / deviation),
                                         "lambda %g", SHUF__MALLOWS_LAMBDA);
    f->has_regions = true;
    f->hoeffding =
        (struct shuf__region){-hoeffding, hoeffding, fmin(1, 2 * exp(-2 * pairs * off * off))};
    f->normal = (struct shuf__region){-normal, normal, f->p};
}
