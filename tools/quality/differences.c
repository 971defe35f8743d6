/* SPDX-License-Identifier: MIT
 *
 * Differences f(i + d) - f(i) mod n over all i. Positions i + d are mod n too.
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
 * rows.
 */
#include "test.h"

#include <string.h>

enum { HALF_PARTS = 128, DISTANCES = 6, SHIFT = 46 };

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
static unsigned distances_of(uint32_t n, uint32_t distance[DISTANCES])
{
    const uint32_t candidate[DISTANCES] = {1, 2, 3, n / 8, n / 4, n / 2};
    unsigned count = 0;
    for (unsigned i = 0; i < DISTANCES; i++)
        if (candidate[i] <= n / 2 && (count == 0 || candidate[i] > distance[count - 1]))
            distance[count++] = candidate[i];
    return count;
}

enum { CELLS = 2 * HALF_PARTS + 1 };

size_t shuf__differences_words(uint32_t n)
{
    (void)n;
    return 1 + DISTANCES * CELLS; /* the number of rows, and the counts */
}

static inline void add_range(const struct mirror *m, const uint32_t *from, const uint32_t *to,
                             uint32_t count, uint64_t *words)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t x = to[i] - from[i];
        words[cell_of(m, x + (to[i] < from[i] ? m->n : 0))]++;
    }
}

static void add_distance(const struct shuf__rows *rows, const struct mirror *m, uint32_t d,
                         uint64_t *words)
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
    uint32_t distance[DISTANCES];
    const unsigned count = distances_of(rows->n, distance);
    words[0] += rows->count;
    for (unsigned i = 0; i < count; i++)
        add_distance(rows, &m, distance[i], words + 1 + i * CELLS);
}

/* The number of differences that belong to each cell. */
static void cell_sizes(const struct mirror *m, double size[CELLS])
{
    memset(size, 0, CELLS * sizeof *size);
    for (uint32_t x = 1; x < m->n; x++)
        size[cell_of(m, x)]++;
}

/* Computes a + b and a - b of the comment above. */
static void variances(double n, bool halves, double *sums, double *differences)
{
    *sums = halves ? n * (n - 2) / (2 * (n - 1) * (n - 3)) : n / (n - 1);
    *differences = halves ? n / (2 * (n - 1)) : n * n / ((n - 1) * (n - 2));
}

static struct shuf__chi_squared compare(const struct mirror *m, uint32_t d, const uint64_t *count,
                                        double rows)
{
    const double n = m->n, mean = rows * (2 * d == m->n ? n / 2 : n) / (n - 1);
    double size[CELLS], of_sums, of_differences;
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
    uint32_t distance[DISTANCES];
    const unsigned count = distances_of(n, distance);
    for (unsigned i = 0; i < count && words[0] >= LEAST_ROWS; i++)
        shuf__find_chi_squared(findings, n,
                               compare(&m, distance[i], words + 1 + i * CELLS, (double)words[0]),
                               "distance %u", distance[i]);
}
