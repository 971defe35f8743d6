/* SPDX-License-Identifier: MIT
 *
 * Parallelograms of a permutation: two pairs of positions at the same distance d whose differences
 * of values are equal, or opposite, modulo M. An affine map makes every pair of pairs one; folds
 * between such maps leave too many of them.
 */
#ifndef SHUF__PARALLELOGRAMS_H
#define SHUF__PARALLELOGRAMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What chance does: exact for a uniformly random permutation of 0 .. n - 1. */
struct shuf__parallelogram_law {
    double equal;  /* two pairs of four different positions: equal differences */
    double either; /* equal or opposite ones */
    double chain;  /* i, i + d, i + 2d: equal (they cannot be opposite) */
};

/* The modulus that is counted by: that given, at least n; or 2n - 1, which no difference wraps
 * around, for 0 and for all that are larger. */
uint64_t shuf__parallelogram_modulus(uint64_t n, uint64_t modulus);

/* `modulus` as that function gives it. 4 <= n <= 2^40. */
struct shuf__parallelogram_law shuf__parallelogram_law(uint64_t n, uint64_t modulus);

struct shuf__parallelograms {
    uint64_t equal, either; /* how many there are */
    uint64_t pairs, chains; /* of pairs: without a common position; with one */
};

/* How many there can be at distance d: `pairs` and `chains`. */
struct shuf__parallelograms shuf__parallelogram_places(uint64_t n, uint64_t d);

double shuf__parallelograms_expected(const struct shuf__parallelogram_law *law,
                                     const struct shuf__parallelograms *places);

/* Counts them. `tally`: 2n - 1 zeros, which it leaves there. */
struct shuf__parallelograms shuf__parallelograms_count(uint32_t n, uint64_t modulus,
                                                       const uint32_t *row, uint32_t d,
                                                       uint32_t *tally);

/* How likely chance makes so many of either kind, or more, at one distance: by a gamma law with
 * the first three moments of independent differences. */
double shuf__parallelograms_p(const struct shuf__parallelogram_law *law,
                              const struct shuf__parallelograms *counted);

/* How many distances of a row the test `parallelograms` looks at, and which. */
uint32_t shuf__parallelogram_distances(uint32_t n);
uint32_t shuf__parallelogram_distance(uint32_t n, uint64_t row, uint32_t k);

/* Adds a row to the words of that test: what was counted at each of its distances. */
void shuf__parallelograms_take(uint32_t n, uint64_t modulus, uint64_t row,
                               const struct shuf__parallelograms *counted, uint64_t *words);

#ifdef __cplusplus
}
#endif

#endif
