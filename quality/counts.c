/* SPDX-License-Identifier: MIT
 *
 * What can be counted in one row: fixed points, cycles, descents, inversions. One
 * number a row, so the observations are independent and their law is known
 * (laws.h); the parity is that of n - cycles.
 *
 * Each is judged by Pearson's test of its distribution, and by its mean, which sees
 * a small shift sooner.
 */
#include "families.h"
#include "inversions.h"
#include "laws.h"

#include <math.h>
#include <string.h>

/* Words: rows, the sum of (value - the mean rounded down) mod 2^64, the cells of the law. */
enum { ROWS, SUM, CELLS, WORDS = CELLS + SHUF__LAW_CELLS };

/* Fixed points and cycles are skew: with fewer rows the mean is not yet normal. */
enum { LEAST_ROWS = 25, LEAST_ROWS_SKEW = 1000 };

static void add_values(const struct shuf__rows *rows, const struct shuf__law *law,
                       uint64_t (*value_of)(const struct shuf__rows *, const uint32_t *row),
                       uint64_t *words)
{
    words[ROWS] += rows->count;
    for (size_t r = 0; r < rows->count; r++) {
        const uint64_t value = value_of(rows, rows->row + r * rows->n);
        words[SUM] += value - (uint64_t)law->mean;
        words[CELLS + shuf__law_cell(law, value)]++;
    }
}

static void judge_mean(uint32_t n, const struct shuf__law *law, const uint64_t *words,
                       struct shuf__findings *findings)
{
    const double rows = (double)words[ROWS], expected = law->mean - floor(law->mean);
    const double mean = (double)(int64_t)words[SUM] / rows;
    const double z = (mean - expected) / sqrt(law->variance / rows);
    shuf__find(findings, n, floor(law->mean) + mean, law->mean, shuf__normal_p(z), "mean");
}

static void judge(uint32_t n, const struct shuf__law *law, uint64_t least_rows,
                  const uint64_t *words, struct shuf__findings *findings)
{
    double p[SHUF__LAW_CELLS];
    shuf__law_cells(law, n, p);
    shuf__find_chi_squared(findings, n, shuf__pearson(words + CELLS, p, SHUF__LAW_CELLS),
                           "distribution");
    if (words[ROWS] >= least_rows)
        judge_mean(n, law, words, findings);
}

#define FAMILY(name, least_rows)                                                                  \
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
        judge(n, &law, least_rows, words, findings);                                              \
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

static uint64_t count_inversions(const struct shuf__rows *rows, const uint32_t *row)
{
    memcpy(rows->scratch, row, rows->n * sizeof *row);
    return shuf__inversions(rows->n, rows->scratch, rows->scratch + rows->n);
}

/* Follows each cycle from its least element; `left` has a bit for what has not been seen. */
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

FAMILY(fixed_points, LEAST_ROWS_SKEW);
FAMILY(descents, LEAST_ROWS);
FAMILY(inversions, LEAST_ROWS);

/* The last word: rows whose permutation is even. */
size_t shuf__cycles_words(uint32_t n)
{
    (void)n;
    return WORDS + 1;
}

void shuf__cycles_add(const struct shuf__rows *rows, uint64_t *words)
{
    const struct shuf__law law = shuf__law_cycles(rows->n);
    words[ROWS] += rows->count;
    for (size_t r = 0; r < rows->count; r++) {
        const uint64_t cycles = count_cycles(rows, rows->row + r * rows->n);
        words[SUM] += cycles - (uint64_t)law.mean;
        words[CELLS + shuf__law_cell(&law, cycles)]++;
        words[WORDS] += (rows->n - cycles) % 2 == 0;
    }
}

void shuf__cycles_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct shuf__law law = shuf__law_cycles(n);
    const uint64_t rows = words[ROWS], even = words[WORDS];
    judge(n, &law, LEAST_ROWS_SKEW, words, findings);
    shuf__find(findings, n, (double)even, (double)rows / 2, shuf__coin_p(even, rows), "parity");
}
