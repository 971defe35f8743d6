/* SPDX-License-Identifier: MIT
 *
 * The inversions of a permutation: the number of pairs in the wrong order. Takes time O(n log n).
 */
#ifndef SHUF__INVERSIONS_H
#define SHUF__INVERSIONS_H

#include <stdint.h>

/* `values` is a permutation of 0 .. n - 1. Its order after the call is undefined. `scratch` has
 * room for n values. */
uint64_t shuf__inversions(uint32_t n, uint32_t *values, uint32_t *scratch);

#endif
