/* SPDX-License-Identifier: MIT
 *
 * Counts of small permutations: each of the n! permutations, and the relative order of a few
 * neighbours. The number of a permutation is computed from its inversions.
 *
 * Rows are independent. The relative orders of groups of positions that do not overlap are
 * independent too, even in one row. So the counts are exactly multinomial with equal cells. Only
 * the law of Pearson's statistic is an approximation for many rows.
 */
#include "test.h"

enum { LENGTHS = 2, LEAST_IN_CELL = 5 };
static const uint32_t lengths[LENGTHS] = {3, 5};

static uint32_t factorial(uint32_t k)
{
    return k < 2 ? 1 : k * factorial(k - 1);
}

/* The number, 0 .. k! - 1, of the relative order of k different values. */
static inline uint32_t number_of(const uint32_t *value, uint32_t k)
{
    uint32_t number = 0;
    for (uint32_t i = 1; i < k; i++) {
        uint32_t greater = 0;
        for (uint32_t j = 0; j < i; j++)
            greater += value[j] > value[i];
        number = number * (i + 1) + greater;
    }
    return number;
}

static struct shuf__chi_squared even_cells(const uint64_t *count, uint32_t cells)
{
    double total = 0, sum = 0;
    for (uint32_t k = 0; k < cells; k++)
        total += (double)count[k];
    const double expected = total / cells;
    if (expected < LEAST_IN_CELL)
        return (struct shuf__chi_squared){0, 0};
    for (uint32_t k = 0; k < cells; k++)
        sum += ((double)count[k] - expected) * ((double)count[k] - expected) / expected;
    return (struct shuf__chi_squared){sum, cells - 1};
}

size_t shuf__orders_words(uint32_t n)
{
    return factorial(n);
}

void shuf__orders_add(const struct shuf__rows *rows, uint64_t *words)
{
    for (size_t r = 0; r < rows->count; r++)
        words[number_of(rows->row + r * rows->n, rows->n)]++;
}

void shuf__orders_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    shuf__find_chi_squared(findings, n, even_cells(words, factorial(n)), "%u!", n);
}

size_t shuf__patterns_words(uint32_t n)
{
    (void)n;
    return 6 + 120;
}

/* The first group begins at another position in each row. So any two neighbours are in the same
 * group in some rows. */
static inline void add_patterns(const struct shuf__rows *rows, uint32_t k, uint64_t *words)
{
    const uint32_t n = rows->n;
    if (n < k)
        return;
    for (size_t r = 0; r < rows->count; r++) {
        const uint32_t *row = rows->row + r * n;
        for (uint32_t i = (rows->first + r) % (n - k < k ? n - k + 1 : k); i + k <= n; i += k)
            words[number_of(row + i, k)]++;
    }
}

void shuf__patterns_add(const struct shuf__rows *rows, uint64_t *words)
{
    add_patterns(rows, 3, words);
    add_patterns(rows, 5, words + 6);
}

void shuf__patterns_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    for (int i = 0; i < LENGTHS; words += factorial(lengths[i]), i++)
        if (n >= lengths[i])
            shuf__find_chi_squared(findings, n, even_cells(words, factorial(lengths[i])), "of %u",
                                   lengths[i]);
}
