/* SPDX-License-Identifier: MIT
 *
 * What the moments of normal values must be: of the law itself or, for numbers of 16
 * bits, of the law rounded to them.
 */
#ifndef SHUF__BENCH_MOMENTS_H
#define SHUF__BENCH_MOMENTS_H

#include "shuf_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOMENTS_MOST = 16 };

/* moment[k] becomes E z^k, k = 0 .. MOMENTS_MOST. */
void moments_expected(shuf_dtype dtype, double moment[MOMENTS_MOST + 1]);

/* Sums whose roundings are made good (Neumaier's). */
struct exact_sum {
    double sum, lost;
};

void exact_add(struct exact_sum *s, double x);

#ifdef __cplusplus
}
#endif

#endif
