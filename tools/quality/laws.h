/* SPDX-License-Identifier: MIT
 *
 * The laws of a uniformly random permutation of n elements: distributions and moments of the tests'
 * statistics. They are exact unless a comment says otherwise.
 */
#ifndef SHUF__LAWS_H
#define SHUF__LAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The distribution of an integer statistic of a row, such as its inversions, in cells of equal
 * width. Cell k holds low + k * width and the width - 1 numbers above. Numbers outside belong to
 * the first and the last cell. */
enum { SHUF__LAW_CELLS = 1024 };

struct shuf__law {
    int64_t low;
    uint64_t width;
    double mean, variance;
    double cumulant;                                          /* the fourth cumulant, for n >= 4 */
    void (*exact)(uint32_t n, uint64_t size, long double *p); /* of 0 .. size - 1; NULL: normal */
    uint64_t size;
};

struct shuf__law shuf__law_fixed_points(uint32_t n); /* n >= 2, for all laws */
struct shuf__law shuf__law_cycles(uint32_t n);
struct shuf__law shuf__law_descents(uint32_t n);
struct shuf__law shuf__law_inverse_descents(uint32_t n); /* equal to that of descents */
struct shuf__law shuf__law_inversions(uint32_t n);

/* The cell of a value. */
unsigned shuf__law_cell(const struct shuf__law *law, uint64_t value);

/* The probability of each cell. Without an exact law it is that of the normal distribution with its
 * first correction for kurtosis (all such laws are symmetric). The error is of order n^-2. */
void shuf__law_cells(const struct shuf__law *law, uint32_t n, double p[SHUF__LAW_CELLS]);

/* E[exp(-lambda * d / C(n, 2))] for d discordant pairs of two random permutations. This is the
 * normalising constant of Mallows divided by n!. lambda > 0. */
double shuf__law_mallows(uint32_t n, double lambda);

/* The number of pairs (a - b, c - b) with a - 2b + c = t mod n, among the (n - 1)(n - 2) pairs of
 * three different numbers a, b, c mod n. n >= 3, t < n. */
uint64_t shuf__law_second_difference(uint32_t n, uint32_t t);

#endif
