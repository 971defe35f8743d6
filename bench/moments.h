/* SPDX-License-Identifier: MIT
 *
 * The expected moments of normal values. For 16-bit numbers these are the moments of the normal law
 * after rounding to the type.
 */
#ifndef SHUF__BENCH_MOMENTS_H
#define SHUF__BENCH_MOMENTS_H

#include "shuf_dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOMENTS_MOST = 16 };

/* Sets moment[k] to E z^k, k = 0 .. MOMENTS_MOST. */
void moments_expected(shuf_dtype dtype, double moment[MOMENTS_MOST + 1]);

/* A sum with compensation of its rounding errors (Neumaier). */
struct exact_sum {
    double sum, lost;
};

void exact_add(struct exact_sum *s, double x);

#ifdef __cplusplus
}
#endif

#endif
