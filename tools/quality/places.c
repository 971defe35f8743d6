/* SPDX-License-Identifier: MIT
 *
 * Tests that count where values stand: each value at each position, the order of neighbours, and
 * differences of two and of three values.
 */
#include "shuf/prime.h"
#include "test.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Places ---- */

/* A table that counts each value at each position. Positions and values are in at most 256 parts.
 *
 * A permutation adds a matrix with a single 1 in each row and column, so the counts of the table
 * depend on each other. The sums of the table's rows and columns are fixed. Apart from this, a sum
 * of the matrix with weights a has the variance |a|^2 / (n - 1) (Hoeffding: "A combinatorial
 * central limit theorem", 1951). The same holds for parts of p positions and v values, in units of
 * sqrt(p v). So (n - 1) / n times Pearson's sum has exactly the mean (parts - 1)^2. For many
 * permutations its law is chi-squared with (parts - 1)^2 degrees of freedom. */

enum { PARTS = 256, PLACES_LEAST_IN_CELL = 10 };

size_t shuf__places_words(uint32_t n)
{
    const size_t parts = n < PARTS ? n : PARTS;
    return 1 + parts * parts; /* the number of rows, and the table */
}

void shuf__places_add(const struct shuf__rows *rows, uint64_t *words)
{
    const struct shuf__parts parts = shuf__parts_of(rows->n, PARTS);
    uint64_t *table = words + 1;
    words[0] += rows->count;
    for (size_t r = 0; r < rows->count; r++) {
        const uint32_t *row = rows->row + r * rows->n;
        for (uint32_t i = 0; i < rows->n; i++)
            table[shuf__part(&parts, i) * parts.cells + shuf__part(&parts, row[i])]++;
    }
}

/* The table with neighbouring parts joined. Few rows would not fill all cells. */
struct grouped {
    uint32_t cells;
    double size[PARTS];
    double *count;
};

static struct grouped group_parts(const struct shuf__parts *parts, uint32_t cells,
                                  const uint64_t *table)
{
    uint32_t size[PARTS];
    struct grouped g = {.cells = cells};
    g.count = calloc((size_t)g.cells * g.cells, sizeof *g.count);
    assert(g.count);
    shuf__part_sizes(parts, size);
    for (uint32_t i = 0; i < parts->cells; i++) {
        g.size[i * cells / parts->cells] += size[i];
        for (uint32_t v = 0; v < parts->cells; v++)
            g.count[i * cells / parts->cells * cells + v * cells / parts->cells] +=
                (double)table[i * parts->cells + v];
    }
    return g;
}

static struct shuf__chi_squared places_compare(uint32_t n, const struct grouped *g, double rows)
{
    double sum = 0;
    for (uint32_t i = 0; i < g->cells; i++)
        for (uint32_t v = 0; v < g->cells; v++) {
            const double expected = rows * g->size[i] * g->size[v] / n;
            const double off = g->count[i * g->cells + v] - expected;
            sum += off * off / expected;
        }
    const double degrees = g->cells - 1.0;
    return (struct shuf__chi_squared){sum * (n - 1.0) / n, degrees * degrees};
}

void shuf__places_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct shuf__parts parts = shuf__parts_of(n, PARTS);
    const double rows = (double)words[0];
    uint32_t cells = parts.cells;
    while (cells > 1 && rows * n < PLACES_LEAST_IN_CELL * (double)cells * cells)
        cells--;
    struct grouped g = group_parts(&parts, cells, words + 1);
    if (g.cells > 1)
        shuf__find_chi_squared(findings, n, places_compare(n, &g, rows), "%ux%u", g.cells, g.cells);
    free(g.count);
}

/* ---- Patterns ---- */

/* Counts of small permutations: each of the n! permutations, and the relative order of a few
 * neighbours. The number of a permutation is computed from its inversions.
 *
 * Rows are independent. The relative orders of groups of positions that do not overlap are
 * independent too, even in one row. So the counts are exactly multinomial with equal cells. Only
 * the law of Pearson's statistic is an approximation for many rows. */

enum { LENGTHS = 2, PATTERNS_LEAST_IN_CELL = 5 };
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
    if (expected < PATTERNS_LEAST_IN_CELL)
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

/* ---- Differences ---- */

/* Differences f(i + d) - f(i) mod n over all i. Positions i + d are mod n too.
 *
 * The differences of a row depend on each other: two that share a value cannot be opposite, and two
 * that share none use different values. c[x] is the count of the difference x in a row. The exact
 * covariance of c[x] and c[y] has the form
 *     a [x = y] + b [x = -y] + constant,
 * where [...] is 1 if the equation holds, else 0. So the sums c[x] + c[-x] and the differences
 * c[x] - c[-x] are uncorrelated. The sums have the variance 2 (a + b), and the differences have
 * 2 (a - b). Only the sum of all counts is fixed.
 *     2d != n:  a + b = n / (n - 1),  a - b = n^2 / ((n - 1)(n - 2))
 *     2d = n (n / 2 pairs):  a + b = n (n - 2) / (2 (n - 1)(n - 3)),
 *                            a - b = n / (2 (n - 1))
 * This is exact. A cell may also count several neighbouring differences x, if another cell counts
 * their opposites -x. Only the chi-squared law of the sum of squares is an approximation, for many
 * rows. */

enum { HALF_PARTS = 128, DIFFERENCES_DISTANCES = 6, SHIFT = 46 };

/* The cells of differences. x and n - x have neighbouring cells, 2 k and 2 k + 1. The last cell is
 * for n / 2, which is its own opposite. */
struct mirror {
    uint64_t factor;
    uint32_t n, half, parts; /* 1 .. half and their opposites have `parts` cells each */
};

static struct mirror mirror_of(uint32_t n)
{
    struct mirror m = {.n = n, .half = (n - 1) / 2};
    m.parts = m.half < HALF_PARTS ? m.half : HALF_PARTS;
    m.factor = (((uint64_t)m.parts << SHIFT) + m.half - 1) / m.half; /* maps `half` to `parts` */
    return m;
}

/* The cell of the difference x, from 1 to n - 1. */
static inline uint32_t cell_of(const struct mirror *m, uint32_t x)
{
    const uint32_t other = m->n - x, least = x < other ? x : other;
    const uint32_t part = (uint32_t)((least - 1) * m->factor >> SHIFT);
    return 2 * part + (x > other);
}

/* The distances: 1, 2, 3, n/8, n/4 and n/2, without repeats and without those above n / 2. */
static unsigned distances_of(uint32_t n, uint32_t distance[DIFFERENCES_DISTANCES])
{
    const uint32_t candidate[DIFFERENCES_DISTANCES] = {1, 2, 3, n / 8, n / 4, n / 2};
    unsigned count = 0;
    for (unsigned i = 0; i < DIFFERENCES_DISTANCES; i++)
        if (candidate[i] <= n / 2 && (count == 0 || candidate[i] > distance[count - 1]))
            distance[count++] = candidate[i];
    return count;
}

enum { DIFFERENCES_CELLS = 2 * HALF_PARTS + 1 };

size_t shuf__differences_words(uint32_t n)
{
    (void)n;
    return 1 + DIFFERENCES_DISTANCES * DIFFERENCES_CELLS; /* the number of rows, and the counts */
}

static inline void add_range(const struct mirror *m, const uint32_t *from, const uint32_t *to,
                             uint32_t count, uint64_t *words)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t x = to[i] - from[i];
        words[cell_of(m, x + (to[i] < from[i] ? m->n : 0))]++;
    }
}

static void differences_add_distance(const struct shuf__rows *rows, const struct mirror *m,
                                     uint32_t d, uint64_t *words)
{
    const uint32_t n = rows->n;
    for (size_t r = 0; r < rows->count; r++) {
        const uint32_t *row = rows->row + r * n;
        add_range(m, row, row + d, n - d, words);
        if (2 * d != n) /* otherwise these pairs have already been counted */
            add_range(m, row + n - d, row, d, words);
    }
}

void shuf__differences_add(const struct shuf__rows *rows, uint64_t *words)
{
    const struct mirror m = mirror_of(rows->n);
    uint32_t distance[DIFFERENCES_DISTANCES];
    const unsigned count = distances_of(rows->n, distance);
    words[0] += rows->count;
    for (unsigned i = 0; i < count; i++)
        differences_add_distance(rows, &m, distance[i], words + 1 + i * DIFFERENCES_CELLS);
}

/* The number of differences that belong to each cell. */
static void cell_sizes(const struct mirror *m, double size[DIFFERENCES_CELLS])
{
    memset(size, 0, DIFFERENCES_CELLS * sizeof *size);
    for (uint32_t x = 1; x < m->n; x++)
        size[cell_of(m, x)]++;
}

/* Computes a + b and a - b of the comment above. */
static void variances(double n, bool halves, double *sums, double *differences)
{
    *sums = halves ? n * (n - 2) / (2 * (n - 1) * (n - 3)) : n / (n - 1);
    *differences = halves ? n / (2 * (n - 1)) : n * n / ((n - 1) * (n - 2));
}

static struct shuf__chi_squared differences_compare(const struct mirror *m, uint32_t d,
                                                    const uint64_t *count, double rows)
{
    const double n = m->n, mean = rows * (2 * d == m->n ? n / 2 : n) / (n - 1);
    double size[DIFFERENCES_CELLS], of_sums, of_differences;
    struct shuf__chi_squared x = {0, -1}; /* one degree less, because the sum of all is fixed */
    cell_sizes(m, size);
    variances(n, 2 * d == m->n, &of_sums, &of_differences);
    for (uint32_t k = 0; k < m->parts; k++) {
        const double up = (double)count[2 * k], down = (double)count[2 * k + 1];
        const double sum = up + down - 2 * mean * size[2 * k], difference = up - down;
        x.sum += sum * sum / (2 * size[2 * k] * rows * of_sums);
        x.sum += difference * difference / (2 * size[2 * k] * rows * of_differences);
        x.dof += 2;
    }
    if (m->n % 2 == 0) {
        const double off = (double)count[2 * m->parts] - mean;
        x.sum += off * off / (rows * of_sums);
        x.dof++;
    }
    return x;
}

enum { LEAST_ROWS = 25 }; /* also the least expected count of a cell, except that of n / 2 */

void shuf__differences_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const struct mirror m = mirror_of(n);
    uint32_t distance[DIFFERENCES_DISTANCES];
    const unsigned count = distances_of(n, distance);
    for (unsigned i = 0; i < count && words[0] >= LEAST_ROWS; i++)
        shuf__find_chi_squared(findings, n,
                               differences_compare(&m, distance[i],
                                                   words + 1 + i * DIFFERENCES_CELLS,
                                                   (double)words[0]),
                               "distance %u", distance[i]);
}

/* ---- Ratios ---- */

/* Three values at a time modulo a prime p: a = f(i), b = f(i + d) and c = f(i + 2d). The test
 * counts a - 2b + c, and (b - a) / (c - a). A map x -> m x + k of the values does not change the
 * ratio (b - a) / (c - a). A generator with few maps makes some of these numbers too often.
 * Different rows have different distances.
 *
 * The law of one triple is exact. The triples of a row share values, and are draws without
 * replacement. This changes the sum of squares by a part of order 1/n. If n is small and p clearly
 * above n, the change is too large, so n must be at least 96. */

enum { RATIOS_CELLS = 1024, RATIOS_DISTANCES = 8 };
enum { PRIMES, ROWS, SECOND, RATIO = SECOND + RATIOS_CELLS, WORDS = RATIO + RATIOS_CELLS };

size_t shuf__ratios_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

static uint32_t prime_of(uint32_t n, uint64_t modulus)
{
    const uint64_t from = modulus == 0 || modulus >= RATIOS_CELLS - 20 ? n : modulus;
    return (uint32_t)shuf_prime_from(from);
}

/* Makes the inverses: inverse[x] * x = 1 mod p. */
static void invert(uint32_t p, uint32_t inverse[RATIOS_CELLS])
{
    inverse[0] = 0;
    inverse[1] = 1;
    for (uint32_t x = 2; x < p; x++)
        inverse[x] = (uint32_t)((uint64_t)(p - p / x) * inverse[p % x] % p);
}

static void ratios_add_distance(const uint32_t *row, uint32_t n, uint32_t d, uint32_t p,
                                const uint32_t *inverse, uint64_t *words)
{
    for (uint32_t i = 0; i + 2 * d < n; i++) {
        const uint32_t a = row[i], b = row[i + d], c = row[i + 2 * d];
        const uint32_t x = a < b ? b - a : b + p - a, y = a < c ? c - a : c + p - a;
        words[SECOND + (y + 2 * (p - x)) % p]++;
        words[RATIO + x * inverse[y] % p]++;
    }
}

void shuf__ratios_add(const struct shuf__rows *rows, uint64_t *words)
{
    const uint32_t n = rows->n, p = prime_of(n, rows->modulus), most = (n - 1) / 4;
    uint32_t inverse[RATIOS_CELLS];
    invert(p, inverse);
    for (size_t r = 0; r < rows->count; r++) {
        for (uint32_t k = 0; k < RATIOS_DISTANCES; k++)
            ratios_add_distance(rows->row + r * n, n,
                                1 + (uint32_t)(((rows->first + r) * RATIOS_DISTANCES + k) % most),
                                p, inverse, words);
        words[PRIMES] += p;
        words[ROWS]++;
    }
}

/* For all differences x = b - a and y = c - a, as integers, counts the possible values of a. */
static void make_laws(uint32_t n, uint32_t p, double second[RATIOS_CELLS],
                      double ratio[RATIOS_CELLS])
{
    const int64_t size = n, all = size * (size - 1) * (size - 2);
    uint32_t inverse[RATIOS_CELLS];
    invert(p, inverse);
    for (uint32_t k = 0; k < RATIOS_CELLS; k++)
        second[k] = ratio[k] = 0;
    for (int64_t x = 1 - size; x < size; x++)
        for (int64_t y = 1 - size; y < size; y++) {
            const int64_t high = x > y ? x : y, low = x < y ? x : y;
            const int64_t ways = size - (high > 0 ? high : 0) + (low < 0 ? low : 0);
            if (x == 0 || y == 0 || x == y || ways <= 0)
                continue;
            const uint32_t mod_x = (uint32_t)((x + 2 * (int64_t)p) % p);
            const uint32_t mod_y = (uint32_t)((y + 2 * (int64_t)p) % p);
            second[(mod_y + 2 * (p - mod_x)) % p] += (double)ways / (double)all;
            ratio[mod_x * inverse[mod_y] % p] += (double)ways / (double)all;
        }
}

void shuf__ratios_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    const uint32_t p = (uint32_t)(words[PRIMES] / words[ROWS]);
    double second[RATIOS_CELLS], ratio[RATIOS_CELLS];
    make_laws(n, p, second, ratio);
    shuf__find_chi_squared(findings, n,
                           shuf__pearson_least(words + SECOND, second, p, SHUF__LEAST_EXPECTED),
                           "second differences");
    shuf__find_chi_squared(
        findings, n, shuf__pearson_least(words + RATIO, ratio, p, SHUF__LEAST_EXPECTED), "ratios");
}
