/* SPDX-License-Identifier: MIT
 *
 * Parallelograms of a permutation: two pairs of positions at the same distance d, with equal or
 * opposite differences of values modulo M. With an affine map every two pairs make one. Folds
 * between such maps still leave too many.
 */
#ifndef SHUF__PARALLELOGRAMS_H
#define SHUF__PARALLELOGRAMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The probabilities for a uniformly random permutation of 0 .. n - 1, exactly. */
struct shuf__parallelogram_law {
    double equal;  /* equal differences of two pairs, all four positions different */
    double either; /* equal or opposite differences */
    double chain;  /* equal differences at i, i + d, i + 2d (opposite is impossible) */
};

/* The modulus of the count: the given one, at least n; or 2n - 1 if it is 0 or larger than that.
 * Modulo 2n - 1 no difference wraps around. */
uint64_t shuf__parallelogram_modulus(uint64_t n, uint64_t modulus);

/* `modulus` from shuf__parallelogram_modulus(). 4 <= n <= 2^40. */
struct shuf__parallelogram_law shuf__parallelogram_law(uint64_t n, uint64_t modulus);

struct shuf__parallelograms {
    uint64_t equal, either; /* the numbers found */
    uint64_t pairs, chains; /* pairs of pairs without a common position; with one */
};

/* The `pairs` and `chains` at distance d. */
struct shuf__parallelograms shuf__parallelogram_places(uint64_t n, uint64_t d);

double shuf__parallelograms_expected(const struct shuf__parallelogram_law *law,
                                     const struct shuf__parallelograms *places);

/* Counts the parallelograms of a row. `tally` has 2n - 1 zeros before and after the call. */
struct shuf__parallelograms shuf__parallelograms_count(uint32_t n, uint64_t modulus,
                                                       const uint32_t *row, uint32_t d,
                                                       uint32_t *tally);

/* The probability of at least counted->either at one distance: by a gamma law with the first three
 * moments of independent differences. */
double shuf__parallelograms_p(const struct shuf__parallelogram_law *law,
                              const struct shuf__parallelograms *counted);

/* The number of distances that the test `parallelograms` takes of a row, and the k-th of them. */
uint32_t shuf__parallelogram_distances(uint32_t n);
uint32_t shuf__parallelogram_distance(uint32_t n, uint64_t row, uint32_t k);

/* Adds a row to the test's words: the counts at each of its distances. */
void shuf__parallelograms_take(uint32_t n, uint64_t modulus, uint64_t row,
                               const struct shuf__parallelograms *counted, uint64_t *words);

#ifdef __cplusplus
}
#endif

#endif
