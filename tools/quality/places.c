/* SPDX-License-Identifier: MIT
 *
 * A table that counts each value at each position. Positions and values are in at most 256 parts.
 *
 * A permutation adds a matrix with a single 1 in each row and column, so the counts of the table
 * depend on each other. The sums of the table's rows and columns are fixed. Apart from this, a sum
 * of the matrix with weights a has the variance |a|^2 / (n - 1) (Hoeffding: "A combinatorial
 * central limit theorem", 1951). The same holds for parts of p positions and v values, in units of
 * sqrt(p v). So (n - 1) / n times Pearson's sum has exactly the mean (parts - 1)^2. For many
 * permutations its law is chi-squared with (parts - 1)^2 degrees of freedom.
 */
#include "test.h"

#include <assert.h>
#include <stdlib.h>

enum { PARTS = 256, LEAST_IN_CELL = 10 };

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

static struct shuf__chi_squared compare(uint32_t n, const struct grouped *g, double rows)
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
    while (cells > 1 && rows * n < LEAST_IN_CELL * (double)cells * cells)
        cells--;
    struct grouped g = group_parts(&parts, cells, words + 1);
    if (g.cells > 1)
        shuf__find_chi_squared(findings, n, compare(n, &g, rows), "%ux%u", g.cells, g.cells);
    free(g.count);
}
