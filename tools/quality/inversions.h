/* SPDX-License-Identifier: MIT
 *
 * How far a permutation is from being sorted: the number of pairs that stand in
 * the wrong order, in O(n log n).
 */
#ifndef SHUF__INVERSIONS_H
#define SHUF__INVERSIONS_H

#include <stdint.h>

/* `values` is a permutation of 0 .. n - 1, and is sorted when this returns, or not; `scratch` has
 * room for n values too. */
uint64_t shuf__inversions(uint32_t n, uint32_t *values, uint32_t *scratch);

#endif
