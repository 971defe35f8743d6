/* SPDX-License-Identifier: MIT
 *
 * The Mallows kernel and the count of discordant pairs of two rows.
 */
#ifndef SHUF__MALLOWS_H
#define SHUF__MALLOWS_H

#include <stdint.h>

#define SHUF__MALLOWS_LAMBDA 5.0

/* The number of pairs of positions that the two permutations put in different order. `scratch` has
 * room for two rows. */
uint64_t shuf__discordant(uint32_t n, const uint32_t *one, const uint32_t *other,
                          uint32_t *scratch);

/* The kernel: exp(-lambda * discordant / C(n, 2)), with C(n, 2) = n (n - 1) / 2. */
double shuf__mallows_kernel(uint32_t n, uint64_t discordant);

#endif
