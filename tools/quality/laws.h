/* SPDX-License-Identifier: MIT
 *
 * The laws of the tests' statistics: their distributions and moments for a uniformly random
 * permutation of n elements. They are exact unless a comment says otherwise.
 */
#ifndef SHUF__LAWS_H
#define SHUF__LAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The distribution of an integer statistic of a row, such as its inversions, in cells of equal
 * width. Cell k has the `width` numbers from low + k * width on. Smaller numbers belong to the
 * first cell, larger numbers to the last. */
enum { SHUF__LAW_CELLS = 1024 };

struct shuf__law {
    int64_t low;
    uint64_t width;
    double mean, variance;
    double cumulant; /* the fourth cumulant, for n >= 4 */
    /* Writes the probabilities of 0 to size - 1. NULL: the normal law is used. */
    void (*exact)(uint32_t n, uint64_t size, long double *p);
    uint64_t size;
};

struct shuf__law shuf__law_fixed_points(uint32_t n); /* n >= 2, here and below */
struct shuf__law shuf__law_cycles(uint32_t n);
struct shuf__law shuf__law_descents(uint32_t n);
struct shuf__law shuf__law_inverse_descents(uint32_t n); /* equal to the law of descents */
struct shuf__law shuf__law_inversions(uint32_t n);

/* The cell of a value. */
unsigned shuf__law_cell(const struct shuf__law *law, uint64_t value);

/* Computes the probability of each cell. Without an exact law it takes the normal distribution,
 * with the first correction for kurtosis. All such laws are symmetric. The error is of order n^-2.
 */
void shuf__law_cells(const struct shuf__law *law, uint32_t n, double p[SHUF__LAW_CELLS]);

/* The expectation of exp(-lambda * d / C(n, 2)), where d is the number of discordant pairs of two
 * random permutations and C(n, 2) = n (n - 1) / 2. This is the normalising constant of Mallows
 * divided by n!. lambda > 0. */
double shuf__law_mallows(uint32_t n, double lambda);

/* The number of pairs (a - b, c - b) with a - 2b + c = t mod n, among the (n - 1)(n - 2) pairs of
 * three different numbers a, b, c mod n. n >= 3, t < n. */
uint64_t shuf__law_second_difference(uint32_t n, uint32_t t);

/* ---- The counts ---- */

/* `values` is a permutation of 0 .. n - 1. Its order after the call is undefined. `scratch` has
 * room for n values. */
uint64_t shuf__inversions(uint32_t n, uint32_t *values, uint32_t *scratch);

#define SHUF__MALLOWS_LAMBDA 5.0

/* The number of pairs of positions that the two permutations put in different order. `scratch` has
 * room for two rows. */
uint64_t shuf__discordant(uint32_t n, const uint32_t *one, const uint32_t *other,
                          uint32_t *scratch);

/* The kernel: exp(-lambda * discordant / C(n, 2)), with C(n, 2) = n (n - 1) / 2. */
double shuf__mallows_kernel(uint32_t n, uint64_t discordant);

#endif
