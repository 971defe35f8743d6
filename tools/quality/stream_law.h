/* SPDX-License-Identifier: MIT
 *
 * The laws that streams are compared with: normal or uniform. For coarse types the law is rounded
 * to the type's values. Tests get standardised values z: a normal value does not change, and a
 * uniform value u becomes (u - 1/2) sqrt(12).
 */
#ifndef SHUF__STREAM_LAW_H
#define SHUF__STREAM_LAW_H

#include "dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of binary digits of the type's significand, with the hidden digit. */
int shuf__dtype_digits(shuf_dtype dtype);

/* The first function rounds a value to the type. The second converts raw little-endian bytes to
 * values. */
double shuf__dtype_round(shuf_dtype dtype, double value);
void shuf__dtype_decode(shuf_dtype dtype, const void *bytes, size_t count, double *value);

/* Cells between edges: cell k is edge[k] <= z < edge[k + 1]. The outer two are infinite. */
enum { SHUF__CELLS = 1024, SHUF__GUESSES = 4096 };

struct shuf__cells {
    unsigned count;
    double edge[SHUF__CELLS + 1], p[SHUF__CELLS];
    double low, per_z; /* the z of the first guess; the number of guesses for a unit of z */
    uint16_t guess[SHUF__GUESSES];
};

static inline unsigned shuf__cell(const struct shuf__cells *cells, double z)
{
    double at = (z - cells->low) * cells->per_z;
    at = at < 0 ? 0 : at > SHUF__GUESSES - 1 ? SHUF__GUESSES - 1 : at;
    unsigned k = cells->guess[(unsigned)at];
    while (z >= cells->edge[k + 1])
        k++;
    return k;
}

enum { SHUF__Z_MOST = 64 };

/* The functions for correlations: z, its square and its magnitude, each minus its mean. */
enum { SHUF__FUNCTIONS = 3 };
extern const char *const shuf__function_names[SHUF__FUNCTIONS];

/* The means of powers of cos(t z), plain and centred, for a multiple t of SHUF__FREQUENCY. */
enum { SHUF__FREQUENCIES = 40 };
#define SHUF__FREQUENCY 0.5

struct shuf__cosine {
    double mean, variance;
    double fourth; /* centred fourth moment / variance^2 */
    double power[5];
};

struct shuf__stream_law {
    bool uniform;
    shuf_dtype dtype;
    bool rounded; /* the nodes are all values of the type; if not set, those of a quadrature */
    size_t nodes;
    double *node, *weight; /* the expectation of a function f is the sum of weight * f(node) */
    double *upper;         /* rounded: the largest number that is rounded to the node; else NULL */
    double mean[SHUF__FUNCTIONS], variance[SHUF__FUNCTIONS];
    double fourth_mean, fourth_variance;           /* of z^4 */
    double square_kurtosis;                        /* of z^2, minus 3 */
    double spread_variance, spread_kurtosis;       /* of values of shuf__law_spread(); the kurtosis
                                                    * minus 3 */
    struct shuf__cosine cosine[SHUF__FREQUENCIES]; /* normal laws only */
    struct shuf__cells cells;                      /* of z */
    struct shuf__cells transformed; /* of a standardised sum of 32 values; normal laws only */
    struct shuf__cells squares;     /* of the sum of 32 squares; normal laws only */
};

/* Fills in *law. shuf__stream_law_free() frees its members. */
shuf_status shuf__stream_law_make(struct shuf__stream_law *law, bool uniform, shuf_dtype dtype,
                                  struct shuf__error *error);
void shuf__stream_law_free(struct shuf__stream_law *law);

/* The probability that two values are equal after they are rounded to the type. Only for laws that
 * are not `rounded`. */
double shuf__law_likeness(const struct shuf__stream_law *law);

/* The probability of numbers below z, and above z, under the law without rounding. */
double shuf__law_below(const struct shuf__stream_law *law, double z);
double shuf__law_above(const struct shuf__stream_law *law, double z);

/* The probability of numbers below a value of a rounded law. The value is first moved to one of the
 * numbers that are rounded to it, so the result is uniform, as for a continuous law. `number`
 * decides to which number it moves; it must not be related to the value. */
double shuf__law_below_spread(const struct shuf__stream_law *law, double z, uint64_t number);
double shuf__law_above_spread(const struct shuf__stream_law *law, double z, uint64_t number);

/* Moves each value of a rounded law to a place among the numbers that are rounded to it. All places
 * are equally likely. Without this, sums of values would lie on a lattice. Values of other laws do
 * not change. */
void shuf__law_spread(const struct shuf__stream_law *law, const double *z, size_t count,
                      uint64_t number, double *spread);

/* The upper-tail probability of the Anderson-Darling statistic, in the limit of many values. */
double shuf__law_anderson_darling(double a2);

#endif
