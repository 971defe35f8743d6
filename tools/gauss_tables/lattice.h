/* SPDX-License-Identifier: MIT
 *
 * Whole multiples of many vectors that nearly add up to a given one: the lattice is reduced by the
 * algorithm of Lenstra, Lenstra and Lovasz, then Babai's nearest plane is taken.
 */
#ifndef SHUF__GAUSS_LATTICE_H
#define SHUF__GAUSS_LATTICE_H

#include <stdint.h>

enum {
    SHUF__VECTORS = 160,
    SHUF__COORDINATES = 8,
};

/* Small `times` for which target + sum of times[i] * vector[i] is small, a multiple of one counting
 * as much as `cost` in a coordinate. Coordinates are rounded to integers, and below 2^23. */
void shuf__lattice_cancel(const double vector[SHUF__VECTORS][SHUF__COORDINATES],
                          const double target[SHUF__COORDINATES], int cost,
                          int times[SHUF__VECTORS]);

#endif
