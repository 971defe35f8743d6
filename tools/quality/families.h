/* SPDX-License-Identifier: MIT
 *
 * Declares the functions of the tests, for the table in tests.c.
 */
#ifndef SHUF__FAMILIES_H
#define SHUF__FAMILIES_H

#include "test.h"

#define SHUF__FAMILY(name)                                          \
    size_t shuf__##name##_words(uint32_t n);                        \
    void shuf__##name##_add(const struct shuf__rows *, uint64_t *); \
    void shuf__##name##_judge(uint32_t n, const uint64_t *, struct shuf__findings *)

SHUF__FAMILY(orders);
SHUF__FAMILY(places);
SHUF__FAMILY(differences);
SHUF__FAMILY(parallelograms);
SHUF__FAMILY(ratios);
SHUF__FAMILY(characters);
SHUF__FAMILY(fixed_points);
SHUF__FAMILY(cycles);
SHUF__FAMILY(descents);
SHUF__FAMILY(inverse_descents);
SHUF__FAMILY(inversions);
SHUF__FAMILY(patterns);
SHUF__FAMILY(second_differences);
SHUF__FAMILY(mallows);
SHUF__FAMILY(epochs);
SHUF__FAMILY(seeds);
SHUF__FAMILY(avalanche);

#endif
