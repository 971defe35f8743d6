/* SPDX-License-Identifier: MIT
 *
 * Numbers of 113 bits, the same on every machine: what the tables must show is 1e-19 and less, the
 * difference of moments that are near one million.
 */
#ifndef SHUF__GAUSS_REAL_H
#define SHUF__GAUSS_REAL_H

#include <float.h>
#include <math.h>

#if LDBL_MANT_DIG == 113
typedef long double shuf__real;
#else
typedef __float128 shuf__real;
#endif

/* x >= 0; as exact as the type, by Newton's steps from a double. */
static inline shuf__real shuf__real_sqrt(shuf__real x)
{
    if (x == 0)
        return 0;
    shuf__real root = sqrt((double)x);
    for (int step = 0; step < 3; step++)
        root = (root + x / root) / 2;
    return root;
}

static inline shuf__real shuf__real_power(shuf__real x, int n)
{
    shuf__real power = 1;
    for (int i = 0; i < n; i++)
        power *= x;
    return power;
}

#endif
