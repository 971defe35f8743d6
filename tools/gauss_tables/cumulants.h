/* SPDX-License-Identifier: MIT
 *
 * Cumulants of symmetric laws. Those of independent terms add, so they lead exactly from a table of
 * a few numbers to the law of a sum of many; and they give the expectations of Hermite polynomials.
 * Odd orders vanish: index i stands for order 2i everywhere.
 */
#ifndef SHUF__GAUSS_CUMULANTS_H
#define SHUF__GAUSS_CUMULANTS_H

#include "real.h"

#include <stdint.h>

enum {
    SHUF__ORDERS = 13, /* 0, 2 .. 24 */
    SHUF__TABLES = 16,
    SHUF__MAGNITUDES = 128,
    SHUF__PAIRS = SHUF__TABLES / 2, /* table t and t + 8 */
    SHUF__DRAWS = 4,                /* from every table in S: a pair serves four of 32 positions */
    SHUF__UNIT = 1 << 16,           /* SHUF_GAUSS_UNIT, integers to a deviation of one table */
    SHUF__LARGEST = (1 << 18) - 1,  /* so that 64 of them sum to less than 2^24 */
    SHUF__FRACTION = 19,            /* z = S A + (h + 1/2) C, S an integer, A nearly 2^-19 */
    SHUF__STEPS = 32,               /* bits of h */
};

typedef struct shuf__series {
    shuf__real of[SHUF__ORDERS];
} shuf__series;

/* Of 128 magnitudes each, in SHUF__UNITths; the sign is drawn. */
typedef struct shuf__tables {
    int32_t of[SHUF__TABLES][SHUF__MAGNITUDES];
} shuf__tables;

/* C(n, k), n <= 24. */
shuf__real shuf__choose(int n, int k);

/* sqrt(n!), what makes He_n of unit length. */
shuf__real shuf__hermite_length(int n);

/* The powers of magnitude / SHUF__UNIT. */
shuf__series shuf__powers(int32_t magnitude);

/* Of the law with these sums of powers over `count` magnitudes. */
shuf__series shuf__cumulants_of_sums(const shuf__series *sums, int count);

/* Of the law that is each of +-magnitude[j] equally often. */
shuf__series shuf__cumulants(const int32_t *magnitude, int count);

/* Of S, four independent draws from every table. */
shuf__series shuf__cumulants_of_tables(const shuf__tables *tables);

/* Of h + 1/2. */
shuf__series shuf__cumulants_of_steps(void);

/* E He_n, n = 2i, of a law with unit variance or nearly so. */
shuf__series shuf__hermite_moments(const shuf__series *cumulants);

#endif
