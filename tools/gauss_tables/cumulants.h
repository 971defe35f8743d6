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
    SHUF__UNIT = 1 << 17,    /* SHUF_GAUSS_UNIT, integers to a standard deviation */
    SHUF__LARGEST = 1 << 19, /* so that 32 of them sum to at most 2^24 */
    SHUF__STEPS = 16383,     /* c is one of the odd numbers from -STEPS to STEPS */
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

/* Of S, two independent draws from every table. */
shuf__series shuf__cumulants_of_tables(const shuf__tables *tables);

/* Of c. */
shuf__series shuf__cumulants_of_steps(void);

/* E He_n, n = 2i, of a law with unit variance or nearly so. */
shuf__series shuf__hermite_moments(const shuf__series *cumulants);

#endif
