/* SPDX-License-Identifier: MIT
 *
 * The distance chi^2 of a block of 32 values from independent normal values. It is the sum of the
 * terms of single entries, called z^2, and of the terms of two entries. README.md derives both.
 */
#ifndef SHUF__GAUSS_BLOCK_H
#define SHUF__GAUSS_BLOCK_H

#include "entry.h"

enum { SHUF__PAIRED = 20 }; /* the terms of two entries have total orders up to twice this */

struct shuf__block {
    shuf__series part; /* of z^2, by order */
    double above;      /* bound of the part of z^2 of orders above SHUF__DEGREE */
    double z2;         /* the sum of `part` and `above` */
    /* For each kind of terms, the sum of the lane in which it is largest: */
    double two;    /* two entries against two */
    double three;  /* one entry against two */
    double beyond; /* two entries against two, higher orders, in 16 of the values */
};

struct shuf__block shuf__block_look(const struct shuf__entries *entries);

/* E (w_0^n_0 w_1^n_1 w_2^n_2 w_3^n_3) for four Walsh coefficients w of 32 random signs. Each
 * coefficient is divided by 32. The exclusive or of their indices is 0. With n_2 = n_3 = 0 only two
 * coefficients count. */
double shuf__walsh_moment(const int n[4]);

#endif
