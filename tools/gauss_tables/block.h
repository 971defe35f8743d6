/* SPDX-License-Identifier: MIT
 *
 * The distance chi^2 of a block of 32 values from independent normal values: z^2, the terms of
 * single entries, and the terms of two entries. README.md derives both.
 */
#ifndef SHUF__GAUSS_BLOCK_H
#define SHUF__GAUSS_BLOCK_H

#include "entry.h"

enum { SHUF__PAIRED = 20 }; /* terms of two entries have total orders up to 40, twice this */

struct shuf__block {
    shuf__series part; /* of z^2, by order */
    double above;      /* bound of the part of z^2 of orders above SHUF__DEGREE */
    double z2;         /* the sum of `part` and `above` */
    double two;        /* terms of two entries against two: the largest magnitude of a lane */
    double three;      /* terms of one entry against two: the same */
    double beyond;     /* terms of two entries against two of higher orders, for 16 of the values:
                        * the same */
};

struct shuf__block shuf__block_look(const struct shuf__entries *entries);

/* E (w_0^n_0 w_1^n_1 w_2^n_2 w_3^n_3) for four Walsh coefficients w of 32 random signs, divided by
 * 32. The sum of their indices is 0. With n_2 = n_3 = 0 only two coefficients count. */
double shuf__walsh_moment(const int n[4]);

#endif
