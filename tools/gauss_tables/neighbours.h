/* SPDX-License-Identifier: MIT
 *
 * The nearest of a million points in eight dimensions: a k-d tree, whose nodes are the middles of
 * ranges of the array itself.
 */
#ifndef SHUF__GAUSS_NEIGHBOURS_H
#define SHUF__GAUSS_NEIGHBOURS_H

#include <stdint.h>

enum { SHUF__DIMENSIONS = 8 };

struct shuf__point {
    float at[SHUF__DIMENSIONS];
    uint16_t first, second; /* the caller's */
};

/* Puts the points in the tree's order; axis[i] is where node i divides. */
void shuf__neighbours_build(struct shuf__point *points, uint8_t *axis, int count);

/* The nearest one whose squared distance is below *squares, which becomes it; NULL without one.
 * Gives up, with the best so far, after having looked at `patience` ranges. */
const struct shuf__point *shuf__neighbours_find(const struct shuf__point *points,
                                                const uint8_t *axis, int count, const float *from,
                                                float *squares, int patience);

#endif
