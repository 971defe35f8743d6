/* SPDX-License-Identifier: MIT
 *
 * Tests on the GPU of values that the CUDA backend computes, for sizes that a CPU cannot reach. A
 * device makes the same counts, in words, as the test on the CPU. The test then judges these words.
 * A device supports only some tests.
 */
#ifndef SHUF__QUALITY_DEVICE_H
#define SHUF__QUALITY_DEVICE_H

#include "error.h"
#include "parallelograms.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shuf__device;

/* Opens a device. `spec` is the text after --backend: cuda, or cuda:1. Fails with SHUF_DEVICE if
 * there is no device, or if this build has no CUDA. */
shuf_status shuf__device_open(const char *spec, struct shuf__device **device,
                              struct shuf__error *error);
void shuf__device_close(struct shuf__device *device);

/* "NVIDIA H200". It lives as long as the device. */
const char *shuf__device_name(const struct shuf__device *device);

/* Rows. Row r is the permutation of (seed, epoch + r) or (seed + r, epoch). */
struct shuf__device_rows {
    const char *algorithm;
    uint32_t n;
    uint64_t modulus; /* from shuf__parallelogram_modulus() */
    uint64_t seed, epoch, rows;
    bool vary_seed;
    uint32_t distances;       /* for each row */
    const uint32_t *distance; /* rows * distances numbers: the distances of each row */
};

/* The best number of rows for one call. */
uint64_t shuf__device_rows_at_once(uint32_t n);

/* Counts parallelograms. counted[] has rows * distances elements. The call sets their fields
 * `equal` and `either`. */
shuf_status shuf__device_count_rows(struct shuf__device *device,
                                    const struct shuf__device_rows *rows,
                                    struct shuf__parallelograms *counted,
                                    struct shuf__error *error);

enum {
    SHUF__DEVICE_CUBES = 32,   /* kinds of subcubes, by the bits in which their positions differ */
    SHUF__DEVICE_COSINES = 64, /* words of a frequency: 32 centred products, 32 plain products */
    SHUF__DEVICE_ODDS = 33,    /* words of a step */
    SHUF__DEVICE_LEAST_STEP = 2, /* the first step */
    SHUF__DEVICE_NORMS = 33,     /* words: variances of 32 weighted norms, and fourth powers */
    SHUF__DEVICE_TIES = 3,       /* words of an exponent */
    SHUF__DEVICE_LEAST_EXPONENT = -24,
    SHUF__DEVICE_EXPONENTS = 27,
    SHUF__DEVICE_CELLS = 256,    /* words of a choice of signs */
    SHUF__DEVICE_SIGNS = 22,     /* choices: 2 for each set of 4 positions, 16 for 8 */
    SHUF__DEVICE_PLACES = 10,    /* places of digits; an f32 has only the first 3 */
    SHUF__DEVICE_RELATIONS = 3,  /* with itself, its neighbour, and the value 64 later */
    SHUF__DEVICE_RELATION = 210, /* words of a relation: equal digits, opposite digits, signs */
    SHUF__DEVICE_UNIT = 1 << 28, /* the most values of a call; a multiple of 1024 */
};

/* The lattice test divides values by a step and adds this number, so that a value half-way between
 * two multiples of the step is rounded up. The number is smaller than the distance of any two
 * numbers of f32 in the range of the test. */
#define SHUF__HALF_WAY_UP 0x1p-30

/* A part of a Gaussian stream, the parameters of its law, and the words of each test. If the words
 * of a test are NULL, the test does not run. */
struct shuf__device_stream {
    bool box_muller;                     /* else the table method */
    uint64_t seed, stream, first, count; /* whole superblocks of 1024; count is at most a unit */
    const char *dtype;                   /* "f64", "f32", "f16", "bf16" */
    unsigned digits;                     /* digits of its significand */
    unsigned frequencies;                /* number of frequencies: multiples of `frequency` */
    double frequency;
    const double *mean, *scale; /* a centred cosine is (cosine - mean) * scale */
    unsigned least_step, most_step;
    double square_mean, square_scale, fourth_mean, fourth_variance;
    double scale4, scale8; /* factors for 4 and for 8 transformed values */
    const double *edges;   /* SHUF__DEVICE_CELLS + 1 edges of the cells of transformed values */
    double *cosines, *norms;
    uint64_t *odds, *ties, *signs;
    uint64_t *places; /* only for f64 and f32 */
};

shuf_status shuf__device_count_stream(struct shuf__device *device,
                                      const struct shuf__device_stream *stream,
                                      struct shuf__error *error);

/* Products over all sets of 3, 4 and 5 positions of a block, at one frequency. Each is the product
 * of a pair and a factor. A factor is a single value, a pair or a triple. */
enum {
    SHUF__DEVICE_PAIRS = 496,
    SHUF__DEVICE_TRIPLES = 4960,
    SHUF__DEVICE_FACTORS = 32 + SHUF__DEVICE_PAIRS + SHUF__DEVICE_TRIPLES,
};

/* Adds the sums of these products to gram[SHUF__DEVICE_FACTORS][SHUF__DEVICE_PAIRS]. Of *stream it
 * reads neither `frequencies` nor the words. Pairs p < q are in order of p, then q. Triples are in
 * the same kind of order. Fails with SHUF_DEVICE if cuBLAS is not installed. */
shuf_status shuf__device_count_subsets(struct shuf__device *device,
                                       const struct shuf__device_stream *stream, double t,
                                       double mean, double scale, double *gram,
                                       struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
