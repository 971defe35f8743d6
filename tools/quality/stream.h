/* SPDX-License-Identifier: MIT
 *
 * The interface of tests on streams of random numbers. The memory of a test has counts and sums. As
 * in test.h, the counts and sums of two parts of the stream can be added. Sums are in fixed point,
 * so a result does not depend on the number of threads.
 */
#ifndef SHUF__STREAM_H
#define SHUF__STREAM_H

#include "dtype.h"
#include "findings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The laws ---- */

/* Normal or uniform. For coarse types the law is rounded to the type's values. Tests get
 * standardised values z: a normal value does not change, and a uniform value u becomes (u - 1/2)
 * sqrt(12). */

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

/* ---- Tests ---- */

enum {
    SHUF__SUPERBLOCK = 1024, /* values: 32 blocks of a Gaussian stream, interleaved in pairs */
    SHUF__BLOCK = 32,
    SHUF__CHUNK = 1 << 15, /* the values that a thread takes at a time */
};

/* The stream that a chunk is compared with. */
enum shuf__stream_relation { SHUF__ALONE, SHUF__NEXT_STREAM, SHUF__NEXT_SEED };

/* A chunk of values. They are standardised by the law, and limited to +-SHUF__Z_MOST. */
struct shuf__chunk {
    const struct shuf__stream_law *law;
    uint64_t first; /* a multiple of SHUF__CHUNK */
    size_t count;
    size_t blocks;          /* the number of blocks in whole superblocks */
    const double *value;    /* the original values */
    const double *z;        /* standardised, in order */
    const double *spread;   /* for a rounded law, z after shuf__law_spread() */
    const double *by_block; /* `spread` ordered by blocks: position p of block b is at 32 b + p */
    const double *by_place; /* z: the 32 values of a superblock at position 0, then at 1, ... */
    const double *relative; /* the same number of values of the other stream, or NULL */
    enum shuf__stream_relation relation;
    double *scratch; /* 2 * SHUF__CHUNK numbers for this thread */
};

struct shuf__stream_test {
    const char *name, *what;
    unsigned of;    /* enum shuf__stream_of */
    bool relatives; /* the test needs a generator */
    size_t counts, sums;
    void (*add)(const struct shuf__chunk *chunk, uint64_t *count, double *sum);
    /* n is the number of values. Tests earlier in the table have already been judged. */
    void (*judge)(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                  const double *sum, struct shuf__findings *findings);
};

enum shuf__stream_of {
    SHUF__OF_NORMAL = 1,
    SHUF__OF_UNIFORM = 2,
    SHUF__OF_FINE = 4, /* only types that are too fine for the test to see their rounding */
};

/* The table of tests ends with NULL. */
extern const struct shuf__stream_test *const shuf__stream_tests[];

enum { SHUF__STREAM_TESTS_MAX = 32 };

bool shuf__stream_applies(const struct shuf__stream_test *test, const struct shuf__stream_law *law,
                          bool relatives);

/* The histogram that every run makes for pictures: width 1/32 from -8 to 8. */
enum { SHUF__HISTOGRAM_CELLS = 512 };
#define SHUF__HISTOGRAM_LOW (-8.0)
#define SHUF__HISTOGRAM_WIDTH (1.0 / 32)

/* Where the numbers come from: a generator, or raw bytes. */
struct shuf__stream_generator;

struct shuf__stream_origin {
    const struct shuf__stream_generator *generator; /* NULL: they come from `input` */
    const char *input;                              /* a path, or "-" */
    shuf_dtype dtype;
    bool uniform;
    uint64_t seed, stream;
};

struct shuf__stream_generator {
    const char *name, *what;
    bool uniform;
    /* Fills in values first to first + count - 1, rounded to the type. `first` and `count` are
     * multiples of SHUF__SUPERBLOCK. */
    void (*fill)(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first, size_t count,
                 double *value);
};

/* Ends with NULL. */
extern const struct shuf__stream_generator *const shuf__stream_generators[];
extern const struct shuf__stream_generator shuf__stream_gauss, shuf__stream_box_muller,
    shuf__stream_uniform, shuf__stream_integers, shuf__stream_broken_gauss;

const struct shuf__stream_generator *shuf__stream_generator_find(const char *name);

struct shuf__stream_run_options {
    const struct shuf__stream_origin *origin;
    const struct shuf__stream_law *law;
    uint64_t samples; /* the most values to judge */
    uint32_t tests;   /* bit i is set to run the test in row i of the table */
    int threads;
    bool progress; /* on stderr, if it is a terminal */
};

struct shuf__stream_outcome {
    uint64_t values; /* the number of judged values, from the first on */
    double seconds;
    bool interrupted, bad_values; /* see struct shuf__outcome */
    uint64_t histogram[SHUF__HISTOGRAM_CELLS];
};

/* Adds the findings of the tests. SHUF_INVALID: a value is not a number, or the input ends inside a
 * value. */
shuf_status shuf__stream_run(const struct shuf__stream_run_options *options,
                             struct shuf__findings *findings, struct shuf__stream_outcome *outcome,
                             struct shuf__error *error);

/* ---- The tests, each at the end of its part of a file ---- */

/* The test `lattice` has steps 2^-k. These are the k of the widest and of the narrowest step for a
 * type. */
void shuf__stream_lattice_steps(shuf_dtype dtype, unsigned *least, unsigned *most);

extern const struct shuf__stream_test shuf__stream_moments, shuf__stream_bins,
    shuf__stream_anderson_darling, shuf__stream_tails, shuf__stream_lags, shuf__stream_pairs,
    shuf__stream_walsh, shuf__stream_squares, shuf__stream_streams, shuf__stream_low_bits,
    shuf__stream_repeats, shuf__stream_lattice, shuf__stream_cosines, shuf__stream_quads,
    shuf__stream_signs, shuf__stream_norms, shuf__stream_places, shuf__stream_round,
    shuf__stream_ties, shuf__stream_windows, shuf__stream_mixed, shuf__stream_quotients;

#endif
