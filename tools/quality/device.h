/* SPDX-License-Identifier: MIT
 *
 * Judging on a GPU what the CUDA backend makes there: sizes that a CPU cannot reach. A device
 * gives the words of the tests that it knows, as the tests themselves count them; they judge.
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

/* `spec` as --backend has it: cuda, cuda:1. SHUF_DEVICE: there is none, or none in this build. */
shuf_status shuf__device_open(const char *spec, struct shuf__device **device,
                              struct shuf__error *error);
void shuf__device_close(struct shuf__device *device);

/* Rows of one permutation each, (seed, epoch + r) or (seed + r, epoch). */
struct shuf__device_rows {
    const char *algorithm;
    uint32_t n;
    uint64_t modulus; /* by shuf__parallelogram_modulus */
    uint64_t seed, epoch, rows;
    bool vary_seed;
    uint32_t distances;       /* of each row */
    const uint32_t *distance; /* rows * distances of them */
};

/* How many rows are best asked for at once. */
uint64_t shuf__device_rows_at_once(uint32_t n);

/* counted[rows * distances]: `equal` and `either`. */
shuf_status shuf__device_count_rows(struct shuf__device *device,
                                    const struct shuf__device_rows *rows,
                                    struct shuf__parallelograms *counted,
                                    struct shuf__error *error);

enum {
    SHUF__DEVICE_CUBES = 32,     /* subcubes of a block, by the bits that differ */
    SHUF__DEVICE_COSINES = 64,   /* of a frequency: 32 centred ones, 32 plain */
    SHUF__DEVICE_ODDS = 33,      /* of a step */
    SHUF__DEVICE_LEAST_STEP = 2, /* that of the first */
    SHUF__DEVICE_NORMS = 33,     /* variances of 32 weighted norms; fourth powers */
    SHUF__DEVICE_TIES = 3,       /* of an exponent */
    SHUF__DEVICE_LEAST_EXPONENT = -24,
    SHUF__DEVICE_EXPONENTS = 27,
    SHUF__DEVICE_CELLS = 256,    /* of a choice of signs */
    SHUF__DEVICE_SIGNS = 22,     /* choices: 2 for each 4 positions that are looked at, 16 for 8 */
    SHUF__DEVICE_PLACES = 10,    /* of digits; an f32 has the first 3 */
    SHUF__DEVICE_RELATIONS = 3,  /* of values whose digits are compared */
    SHUF__DEVICE_RELATION = 210, /* words of a relation: equal, opposite, with signs */
    SHUF__DEVICE_UNIT = 1 << 28, /* values at once; a multiple of 1024 */
};

/* Of a step of the lattice test: what lies half-way between two multiples is moved up by so much,
 * which is less than any two numbers of f32 are apart there. */
#define SHUF__HALF_WAY_UP 0x1p-30

/* A part of a normal stream, what is known of its law, and the words to add to: NULL for none. */
struct shuf__device_stream {
    uint64_t seed, stream, first, count; /* whole superblocks of 1024; count: a unit at most */
    const char *dtype;                   /* "f64", "f32", "f16", "bf16" */
    unsigned digits;                     /* of its significand */
    unsigned frequencies;                /* multiples of `frequency` */
    double frequency;
    const double *mean, *scale; /* of the cosines: subtracted, multiplied by */
    unsigned least_step, most_step;
    double square_mean, square_scale, fourth_mean, fourth_variance;
    double scale4, scale8; /* of 4 and of 8 values that are transformed: multiplied by */
    const double *edges;   /* of the cells of what comes out, SHUF__DEVICE_CELLS + 1 of them */
    double *cosines, *norms;
    uint64_t *odds, *ties, *signs;
    uint64_t *places; /* of f64 and f32 only */
};

shuf_status shuf__device_count_stream(struct shuf__device *device,
                                      const struct shuf__device_stream *stream,
                                      struct shuf__error *error);

/* Products over all sets of 3, 4 and 5 positions of a block, at one frequency: of pairs times
 * single values, pairs and triples. */
enum {
    SHUF__DEVICE_PAIRS = 496,
    SHUF__DEVICE_TRIPLES = 4960,
    SHUF__DEVICE_FACTORS = 32 + SHUF__DEVICE_PAIRS + SHUF__DEVICE_TRIPLES,
};

/* Adds to gram[SHUF__DEVICE_FACTORS][SHUF__DEVICE_PAIRS]; `frequencies` and the words are not
 * looked at. Pairs p < q are in order of p, then q; so are triples. SHUF_DEVICE: cuBLAS is not
 * there. */
shuf_status shuf__device_count_subsets(struct shuf__device *device,
                                       const struct shuf__device_stream *stream, double t,
                                       double mean, double scale, double *gram,
                                       struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
