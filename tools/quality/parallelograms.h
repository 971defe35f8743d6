/* SPDX-License-Identifier: MIT
 *
 * Parallelograms of a permutation. A parallelogram is two pairs of positions at the same distance d
 * whose values have equal or opposite differences modulo M. With an affine map x -> a x + b, every
 * two such pairs are a parallelogram. With folds between such maps there are fewer, but still more
 * than chance gives.
 */
#ifndef SHUF__PARALLELOGRAMS_H
#define SHUF__PARALLELOGRAMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The exact probabilities for a uniformly random permutation of 0 .. n - 1. */
struct shuf__parallelogram_law {
    double equal;  /* equal differences of two pairs, all four positions different */
    double either; /* equal or opposite differences */
    double chain;  /* equal differences at i, i + d and i + 2d (they cannot be opposite) */
};

/* The modulus for the count. It is the given modulus, at least n. If that is 0 or above 2n - 1, it
 * is 2n - 1: then no difference wraps around. */
uint64_t shuf__parallelogram_modulus(uint64_t n, uint64_t modulus);

/* `modulus` is from shuf__parallelogram_modulus(). 4 <= n <= 2^40. */
struct shuf__parallelogram_law shuf__parallelogram_law(uint64_t n, uint64_t modulus);

struct shuf__parallelograms {
    uint64_t equal, either; /* counts of equal differences, and of equal or opposite ones */
    uint64_t pairs, chains; /* pairs of pairs: without a common position; with one */
};

/* Returns the `pairs` and `chains` at distance d. */
struct shuf__parallelograms shuf__parallelogram_places(uint64_t n, uint64_t d);

double shuf__parallelograms_expected(const struct shuf__parallelogram_law *law,
                                     const struct shuf__parallelograms *places);

/* Counts the parallelograms of a row. `tally` has 2n - 1 zeros before and after the call. */
struct shuf__parallelograms shuf__parallelograms_count(uint32_t n, uint64_t modulus,
                                                       const uint32_t *row, uint32_t d,
                                                       uint32_t *tally);

/* The probability to count at least counted->either at one distance. It is that of a gamma law with
 * the same first three moments as independent differences. */
double shuf__parallelograms_p(const struct shuf__parallelogram_law *law,
                              const struct shuf__parallelograms *counted);

/* The number of distances of a row that the test `parallelograms` takes, and distance number k. */
uint32_t shuf__parallelogram_distances(uint32_t n);
uint32_t shuf__parallelogram_distance(uint32_t n, uint64_t row, uint32_t k);

/* Adds the counts of a row, at each of its distances, to the test's words. */
void shuf__parallelograms_take(uint32_t n, uint64_t modulus, uint64_t row,
                               const struct shuf__parallelograms *counted, uint64_t *words);

#ifdef __cplusplus
}
#endif

#endif
