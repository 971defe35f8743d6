/* SPDX-License-Identifier: MIT
 *
 * The tables, in integers and as real numbers, and the constants of a block of 32 values.
 */
#ifndef SHUF__GAUSS_TABLES_H
#define SHUF__GAUSS_TABLES_H

#include <stdint.h>

enum {
    SHUF__TABLES = 16,
    SHUF__PAIRS = SHUF__TABLES / 2,           /* tables t and t + 8 */
    SHUF__MAGNITUDES = 128,                   /* magnitudes of a table */
    SHUF__BLOCK = 32,                         /* entries and values of a transform */
    SHUF__SHARED = SHUF__BLOCK / SHUF__PAIRS, /* entries of a block with the same law */
    SHUF__SMOOTH = 1 << 15,                   /* number of values of an entry's uniform part */
    SHUF__DITHER = 32,                        /* width of the uniform part of a value */
    /* The largest magnitude with which all sums stay below 2^24. */
    SHUF__LARGEST = ((1 << 24) / SHUF__BLOCK - SHUF__SMOOTH / 2) / 2 - 1,
};

/* The standard deviation of an entry and its share of the dither: the square root of 2^33. */
#define SHUF__DEVIATION 0x1.6a09e667f3bcdp+16

/* The sum of the squares of all magnitudes. It gives a value the variance 2^38:
 *
 *     32 (2^38 - 32 (2^30 - 1) / 12 - 1024 / 12), rounded down by a third */
#define SHUF__SQUARES INT64_C(8704467050581)

typedef struct shuf__tables {
    int32_t of[SHUF__TABLES][SHUF__MAGNITUDES];
} shuf__tables;

/* Real numbers in units of SHUF__DEVIATION. */
typedef struct shuf__reals {
    double of[SHUF__TABLES][SHUF__MAGNITUDES];
} shuf__reals;

#endif
