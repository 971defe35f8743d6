/* SPDX-License-Identifier: MIT
 *
 * Tests that two rows are independent. A row is compared with the next row (in pairs), with the row
 * of the next seed, and with the row of a seed with one changed bit. If f and g are uniform and
 * independent, the permutation f(i) -> g(i) is uniform. All counts here depend only on this
 * permutation, so the pairs of rows are independent observations.
 *
 * Its fixed points are the agreements f(i) = g(i). The displacements g(i) - f(i) mod n of one pair
 * have the covariance n / (n - 1) (identity - average). So (n - 1) / n times Pearson's sum has
 * exactly the mean n - 1, or parts - 1 if they are counted in parts. The rank correlation has
 * exactly the mean 0 and the variance 1 / (n - 1).
 */
#include "laws.h"
#include "test.h"

#include <math.h>

enum { PARTS = 256, BITS = 64, LEAST_PAIRS = 25 };

/* The words: the number of pairs; the sum of the rank products, in two halves that are added
 * separately; agreements, in the cells of the law of fixed points; displacements; pairs and
 * agreements for each bit of the seed. */
enum {
    PAIRS,
    PRODUCTS_LOW,
    PRODUCTS_HIGH,
    AGREEMENTS,
    DISPLACEMENTS = AGREEMENTS + SHUF__LAW_CELLS,
    BIT_PAIRS = DISPLACEMENTS + PARTS,
    BIT_AGREEMENTS = BIT_PAIRS + BITS,
    WORDS = BIT_AGREEMENTS + BITS,
};

/* Adds the sum of (2 f - m)(2 g - m), with m = n - 1. It is at most n^3 / 3, so 128 bits are
 * enough.
 */
struct pair {
    uint64_t agreements;
    __int128 product;
};

static struct pair compare_rows(uint32_t n, const struct shuf__parts *parts, const uint32_t *f,
                                const uint32_t *g, uint64_t *displacements)
{
    struct pair pair = {0, 0};
    int64_t product = 0;
    const int64_t most = (int64_t)n - 1;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t d = g[i] - f[i], displacement = d + (g[i] < f[i] ? n : 0);
        displacements[shuf__part(parts, displacement)]++;
        pair.agreements += d == 0;
        product += (2 * (int64_t)f[i] - most) * (2 * (int64_t)g[i] - most);
        if (i % 32 == 31) { /* 32 squares of n <= 2^28 fit 64 bits */
            pair.product += product;
            product = 0;
        }
    }
    pair.product += product;
    return pair;
}

/* The unit of the summed products. With it each product is below 2^55. It is 1 for n < 2^16. */
static uint32_t unit_of(uint32_t n)
{
    return n >> 16 == 0 ? 1 : n;
}

static void add_pair(const struct shuf__rows *rows, const struct shuf__parts *parts,
                     const uint32_t *f, const uint32_t *g, uint64_t *words)
{
    const struct shuf__law law = shuf__law_fixed_points(rows->n);
    const struct pair pair = compare_rows(rows->n, parts, f, g, words + DISPLACEMENTS);
    const int64_t scaled = (int64_t)(pair.product / unit_of(rows->n));
    words[PAIRS]++;
    words[PRODUCTS_LOW] += (uint64_t)scaled & UINT32_MAX;
    words[PRODUCTS_HIGH] += (uint64_t)(scaled >> 32);
    words[AGREEMENTS + shuf__law_cell(&law, pair.agreements)]++;
    words[BIT_PAIRS + rows->bit]++;
    words[BIT_AGREEMENTS + rows->bit] += pair.agreements;
}

static void judge_correlation(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const double m = n, pairs = (double)words[PAIRS];
    const double sum = 0x1p32 * (double)(int64_t)words[PRODUCTS_HIGH] + (double)words[PRODUCTS_LOW];
    const double correlation = 3 * sum * unit_of(n) / (pairs * m * (m * m - 1));
    if (words[PAIRS] >= LEAST_PAIRS)
        shuf__find(findings, n, correlation, 0, shuf__normal_p(correlation * sqrt((m - 1) * pairs)),
                   "rank correlation");
}

static void judge_displacements(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct shuf__parts parts = shuf__parts_of(n, PARTS);
    const double pairs = (double)words[PAIRS];
    uint32_t size[PARTS];
    double sum = 0;
    if (words[PAIRS] < LEAST_PAIRS)
        return;
    shuf__part_sizes(&parts, size);
    for (uint32_t k = 0; k < parts.cells; k++) {
        const double expected = pairs * size[k];
        const double off = (double)words[DISPLACEMENTS + k] - expected;
        sum += off * off / expected;
    }
    const struct shuf__chi_squared x = {sum * (n - 1.0) / n, parts.cells - 1.0};
    shuf__find_chi_squared(findings, n, x, "displacements");
}

static void judge_pairs(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct shuf__law law = shuf__law_fixed_points(n);
    double p[SHUF__LAW_CELLS];
    shuf__law_cells(&law, n, p);
    shuf__find_chi_squared(findings, n, shuf__pearson(words + AGREEMENTS, p, SHUF__LAW_CELLS),
                           "agreements");
    judge_displacements(n, words, findings);
    judge_correlation(n, words, findings);
}

/* Judges each bit of the seed alone. The sum of its agreements has the mean and the variance
 * `pairs`.
 */
static void judge_bits(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    struct shuf__chi_squared x = {0, BITS};
    for (int bit = 0; bit < BITS; bit++) {
        const double pairs = (double)words[BIT_PAIRS + bit];
        const double off = (double)words[BIT_AGREEMENTS + bit] - pairs;
        if (pairs < LEAST_PAIRS)
            return;
        x.sum += off * off / pairs;
    }
    shuf__find_chi_squared(findings, n, x, "agreements by bit");
}

static void add_relatives(const struct shuf__rows *rows, enum shuf__relation relation,
                          uint64_t *words)
{
    const struct shuf__parts parts = shuf__parts_of(rows->n, PARTS);
    const size_t n = rows->n;
    for (size_t r = 0; rows->relation == relation && r < rows->count; r++)
        if (!shuf__rows_seen_from_other(rows, r))
            add_pair(rows, &parts, rows->row + r * n, rows->relative + r * n, words);
}

size_t shuf__epochs_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

void shuf__epochs_add(const struct shuf__rows *rows, uint64_t *words)
{
    const struct shuf__parts parts = shuf__parts_of(rows->n, PARTS);
    const size_t n = rows->n;
    for (size_t r = 0; r + 2 <= rows->count; r += 2)
        add_pair(rows, &parts, rows->row + r * n, rows->row + (r + 1) * n, words);
}

void shuf__epochs_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    judge_pairs(n, words, findings);
}

size_t shuf__seeds_words(uint32_t n)
{
    return shuf__epochs_words(n);
}

void shuf__seeds_add(const struct shuf__rows *rows, uint64_t *words)
{
    add_relatives(rows, SHUF__NEIGHBOUR, words);
}

void shuf__seeds_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    judge_pairs(n, words, findings);
}

size_t shuf__avalanche_words(uint32_t n)
{
    return shuf__epochs_words(n);
}

void shuf__avalanche_add(const struct shuf__rows *rows, uint64_t *words)
{
    add_relatives(rows, SHUF__FLIPPED, words);
}

void shuf__avalanche_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    judge_pairs(n, words, findings);
    judge_bits(n, words, findings);
}
