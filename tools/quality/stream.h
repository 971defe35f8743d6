/* SPDX-License-Identifier: MIT
 *
 * Streams of random numbers: what their tests are given and what they answer. The
 * memory of a test are counts and sums that add up, as in test.h; sums are kept in
 * fixed point, so that a result does not depend on how many threads there were.
 */
#ifndef SHUF__STREAM_H
#define SHUF__STREAM_H

#include "findings.h"
#include "stream_law.h"

enum {
    SHUF__SUPERBLOCK = 1024, /* of the Gaussian stream: 32 blocks of 32, pair by pair */
    SHUF__BLOCK = 32,
    SHUF__CHUNK = 1 << 15, /* values that a thread takes at once */
};

/* What a chunk is compared with. */
enum shuf__stream_relation { SHUF__ALONE, SHUF__NEXT_STREAM, SHUF__NEXT_SEED };

/* Values at hand, standardised as the law says and cut at +-SHUF__Z_MOST. */
struct shuf__chunk {
    const struct shuf__stream_law *law;
    uint64_t first; /* a multiple of SHUF__CHUNK */
    size_t count;
    size_t blocks;          /* whole ones, in whole superblocks */
    const double *value;    /* as they came */
    const double *z;        /* in order */
    const double *spread;   /* of a rounded law: by shuf__law_spread */
    const double *by_block; /* these, block after block: position p of block b at 32 b + p */
    const double *by_place; /* z: a superblock's 32 values of position 0, then of 1, ... */
    const double *relative; /* as many values, or NULL */
    enum shuf__stream_relation relation;
    double *scratch; /* 2 * SHUF__CHUNK of them, this thread's */
};

struct shuf__stream_test {
    const char *name, *what;
    unsigned of;    /* enum shuf__stream_of */
    bool relatives; /* needs a generator */
    size_t counts, sums;
    void (*add)(const struct shuf__chunk *chunk, uint64_t *count, double *sum);
    /* n: how many values there were; those before all came before. */
    void (*judge)(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                  const double *sum, struct shuf__findings *findings);
};

enum shuf__stream_of {
    SHUF__OF_NORMAL = 1,
    SHUF__OF_UNIFORM = 2,
    SHUF__OF_FINE = 4, /* only where the type is so fine that its rounding does not show */
};

/* Ends with NULL. */
extern const struct shuf__stream_test *const shuf__stream_tests[];

enum { SHUF__STREAM_TESTS_MAX = 32 };

bool shuf__stream_applies(const struct shuf__stream_test *test, const struct shuf__stream_law *law,
                          bool relatives);

/* A histogram for pictures, which every run makes: width 1/32 from -8 to 8. */
enum { SHUF__HISTOGRAM_CELLS = 512 };
#define SHUF__HISTOGRAM_LOW (-8.0)
#define SHUF__HISTOGRAM_WIDTH (1.0 / 32)

/* Which numbers: of a generator, else of raw bytes. */
struct shuf__stream_generator;

struct shuf__stream_origin {
    const struct shuf__stream_generator *generator; /* NULL: `input` */
    const char *input;                              /* a path, or "-" */
    shuf_dtype dtype;
    bool uniform;
    uint64_t seed, stream;
};

struct shuf__stream_generator {
    const char *name, *what;
    bool uniform;
    /* Values first to first + count - 1, rounded to the type; both are multiples of
     * SHUF__SUPERBLOCK. */
    void (*fill)(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first, size_t count,
                 double *value);
};

/* Ends with NULL. */
extern const struct shuf__stream_generator *const shuf__stream_generators[];
extern const struct shuf__stream_generator shuf__stream_gauss, shuf__stream_box_muller,
    shuf__stream_uniform, shuf__stream_broken_gauss;

const struct shuf__stream_generator *shuf__stream_generator_find(const char *name);

struct shuf__stream_task {
    const struct shuf__stream_origin *origin;
    const struct shuf__stream_law *law;
    uint64_t samples; /* at most */
    uint32_t tests;   /* bit i: that in row i of the table */
    int threads;
    bool progress; /* on stderr, where that is a terminal */
};

struct shuf__stream_outcome {
    uint64_t values; /* that were judged: the first ones */
    double seconds;
    bool interrupted, bad_values; /* see struct shuf__outcome */
    uint64_t histogram[SHUF__HISTOGRAM_CELLS];
};

/* Adds what the tests find. SHUF_INVALID: a value is no number, or the input ends inside of one. */
shuf_status shuf__stream_run(const struct shuf__stream_task *task, struct shuf__findings *findings,
                             struct shuf__stream_outcome *outcome, struct shuf__error *error);

#endif
