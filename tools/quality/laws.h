/* SPDX-License-Identifier: MIT
 *
 * What a uniformly random permutation of n elements does: the distributions and
 * moments of the statistics that the tests compare with. Exact, unless it says
 * otherwise.
 */
#ifndef SHUF__LAWS_H
#define SHUF__LAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The distribution of a whole number that a row has (its inversions, say), cut into cells of
 * equal width: cell k holds low + k * width and the width - 1 numbers above. What lies outside
 * belongs to the first and last cell. */
enum { SHUF__LAW_CELLS = 1024 };

struct shuf__law {
    int64_t low;
    uint64_t width;
    double mean, variance;
    double cumulant;                                          /* the fourth; from n = 4 on */
    void (*exact)(uint32_t n, uint64_t size, long double *p); /* of 0 .. size - 1; NULL: normal */
    uint64_t size;
};

struct shuf__law shuf__law_fixed_points(uint32_t n); /* 2 <= n; so for all laws */
struct shuf__law shuf__law_cycles(uint32_t n);
struct shuf__law shuf__law_descents(uint32_t n);
struct shuf__law shuf__law_inverse_descents(uint32_t n); /* the same */
struct shuf__law shuf__law_inversions(uint32_t n);

/* Which cell a value belongs to. */
unsigned shuf__law_cell(const struct shuf__law *law, uint64_t value);

/* The probability of each cell. Where there is no exact one: by the normal distribution with
 * its first correction for kurtosis (all such laws are symmetric), whose error is of order n^-2. */
void shuf__law_cells(const struct shuf__law *law, uint32_t n, double p[SHUF__LAW_CELLS]);

/* E[exp(-lambda * d / C(n, 2))] where d is the number of discordant pairs of two random
 * permutations: Mallows' normalising constant, divided by n!. lambda > 0. */
double shuf__law_mallows(uint32_t n, double lambda);

/* How many of the (n - 1)(n - 2) pairs (a - b, c - b) of three different numbers a, b, c mod n
 * have a - 2b + c = t mod n. 3 <= n, t < n. */
uint64_t shuf__law_second_difference(uint32_t n, uint32_t t);

#endif
