/* SPDX-License-Identifier: MIT
 *
 * How far a block of 32 values is from independent normal ones, by chi^2: z^2, of the terms of
 * single entries, and the terms of two. README.md derives both.
 */
#ifndef SHUF__GAUSS_BLOCK_H
#define SHUF__GAUSS_BLOCK_H

#include "entry.h"

enum { SHUF__PAIRED = 20 }; /* terms of two entries: orders up to twice this, 40, together */

struct shuf__block {
    shuf__series part; /* of z^2, by order */
    double above;      /* at most so much of z^2 is of orders above SHUF__DEGREE */
    double z2;         /* with `above` */
    double two;        /* two entries against two: the most of any lane, in magnitude */
    double three;      /* one entry against two, likewise */
    double beyond;     /* two against two, of higher orders, likewise: what 16 of the values see */
};

struct shuf__block shuf__block_look(const struct shuf__entries *entries);

/* E of w_0^n_0 .. w_3^n_3, where w are four Walsh coefficients of 32 random signs, divided by 32,
 * at four indices whose sum is 0; of two where n_2 = n_3 = 0. */
double shuf__walsh_moment(const int n[4]);

#endif
