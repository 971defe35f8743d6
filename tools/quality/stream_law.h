/* SPDX-License-Identifier: MIT
 *
 * The laws that streams are held against: normal or uniform, and for types so
 * coarse that it shows, rounded to the type's values. Tests see standardised values z:
 * those of the normal law as they are, the uniform one's as (u - 1/2) sqrt(12).
 */
#ifndef SHUF__STREAM_LAW_H
#define SHUF__STREAM_LAW_H

#include "dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Binary digits of the significand of a fraction, the hidden one included. */
int shuf__dtype_digits(shuf_dtype dtype);

/* The value rounded to the type; the value that raw little-endian bytes are. */
double shuf__dtype_round(shuf_dtype dtype, double value);
void shuf__dtype_decode(shuf_dtype dtype, const void *bytes, size_t count, double *value);

/* Cells between edges: cell k is edge[k] <= z < edge[k + 1], the outer two without end. */
enum { SHUF__CELLS = 1024, SHUF__GUESSES = 4096 };

struct shuf__cells {
    unsigned count;
    double edge[SHUF__CELLS + 1], p[SHUF__CELLS];
    double low, per_z; /* where guesses begin, how many to a unit */
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

/* The functions whose correlations are looked at: z, its square, its magnitude; each less its
 * mean. */
enum { SHUF__FUNCTIONS = 3 };
extern const char *const shuf__function_names[SHUF__FUNCTIONS];

/* Of cos(t z), t a multiple of SHUF__FREQUENCY: means of its powers, and centred ones. */
enum { SHUF__FREQUENCIES = 40 };
#define SHUF__FREQUENCY 0.5

struct shuf__cosine {
    double mean, variance;
    double fourth; /* centred, over the square of the variance */
    double power[5];
};

struct shuf__stream_law {
    bool uniform;
    shuf_dtype dtype;
    bool rounded; /* the nodes are the type's values, else those of a quadrature */
    size_t nodes;
    double *node, *weight; /* E f = sum of weight * f(node) */
    double *upper;         /* rounded: where values stop being rounded to the node; else NULL */
    double mean[SHUF__FUNCTIONS], variance[SHUF__FUNCTIONS];
    double fourth_mean, fourth_variance;           /* of z^4 */
    double square_kurtosis;                        /* of z^2; less 3 */
    double spread_variance, spread_kurtosis;       /* of what shuf__law_spread gives; less 3 */
    struct shuf__cosine cosine[SHUF__FREQUENCIES]; /* normal laws only */
    struct shuf__cells cells;                      /* of z */
    struct shuf__cells transformed; /* of a sum of 32, standardised; normal laws only */
    struct shuf__cells squares;     /* of the sum of 32 squares; so */
};

/* In memory of the caller's; free what is in it afterwards. */
shuf_status shuf__stream_law_make(struct shuf__stream_law *law, bool uniform, shuf_dtype dtype,
                                  struct shuf__error *error);
void shuf__stream_law_free(struct shuf__stream_law *law);

/* How likely two values of a law that is not rounded here are the same number of its type. */
double shuf__law_likeness(const struct shuf__stream_law *law);

/* How much of the law without rounding lies below z, and above. */
double shuf__law_below(const struct shuf__stream_law *law, double z);
double shuf__law_above(const struct shuf__stream_law *law, double z);

/* The same of a value, from a rounded law spread over the numbers that are rounded to it by
 * `number`, anything that is not random in the same way: so it is uniform, as if continuous. */
double shuf__law_below_spread(const struct shuf__stream_law *law, double z, uint64_t number);
double shuf__law_above_spread(const struct shuf__stream_law *law, double z, uint64_t number);

/* Values of a rounded law, each moved evenly to somewhere among the numbers that are rounded to it:
 * what is added up from them lies on no lattice. Others stay. */
void shuf__law_spread(const struct shuf__stream_law *law, const double *z, size_t count,
                      uint64_t number, double *spread);

/* The upper side of Anderson's and Darling's statistic, in the limit of many values. */
double shuf__law_anderson_darling(double a2);

#endif
