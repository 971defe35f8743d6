/* SPDX-License-Identifier: MIT
 *
 * Counts in one row: fixed points, cycles, descents, inversions. A row gives one number of each
 * kind, so the observations are independent. Their law is known (laws.h). A row is an even
 * permutation if n - cycles is even.
 *
 * Pearson's test judges the distribution of each number. Tests of its mean and of its variance need
 * fewer rows to detect a small change of these.
 */
#include "inversions.h"
#include "laws.h"
#include "test.h"

#include <math.h>
#include <string.h>

/* The words, with off = value - floor(mean): the number of rows; the sum of off mod 2^64; the cells
 * of the law; the sum of off^2. The last sum may have 110 bits, so its 32-bit parts have separate
 * sums. */
enum { SQUARE_PARTS = 4 };
enum { ROWS, SUM, CELLS, SQUARES = CELLS + SHUF__LAW_CELLS, WORDS = SQUARES + SQUARE_PARTS };

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
    words[SUM] += (uint64_t)off;
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
    const double mean = (double)(int64_t)words[SUM] / rows;
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
        sum / rows - 2 * rest * ((double)(int64_t)words[SUM] / rows) + rest * rest;
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
        return WORDS;                                                                             \
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
    return WORDS + 1;
}

void shuf__cycles_add(const struct shuf__rows *rows, uint64_t *words)
{
    const struct shuf__law law = shuf__law_cycles(rows->n);
    for (size_t r = 0; r < rows->count; r++) {
        const uint64_t cycles = count_cycles(rows, rows->row + r * rows->n);
        add_value(&law, cycles, words);
        words[WORDS] += (rows->n - cycles) % 2 == 0;
    }
}

void shuf__cycles_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct shuf__law law = shuf__law_cycles(n);
    const uint64_t rows = words[ROWS], even = words[WORDS];
    judge(n, &law, &skew, words, findings);
    shuf__find(findings, n, (double)even, (double)rows / 2, shuf__coin_p(even, rows), "parity");
}
