/* SPDX-License-Identifier: MIT
 *
 * The computations that benchmarks time, for C and CUDA.
 */
#ifndef SHUF__BENCH_TIMED_H
#define SHUF__BENCH_TIMED_H

#include "backend.h"

#include <string.h>

static inline struct shuf__permutation timed_row(enum shuf_algorithm algorithm, uint64_t n,
                                                 uint64_t seed, uint64_t epoch)
{
    struct shuf__permutation p;
    memset(&p, 0, sizeof p);
    p.algorithm = algorithm;
    p.n = p.count = n;
    p.seed = seed;
    p.epoch = epoch;
    p.rows = p.stride = 1;
    return p;
}

/* The whole permutation, one row, with 8-byte values if n needs them. */
static inline struct shuf__computation timed_permutation(enum shuf_algorithm algorithm, uint64_t n,
                                                         uint64_t seed, uint64_t epoch)
{
    struct shuf__computation computation;
    memset(&computation, 0, sizeof computation);
    computation.request.kind = SHUF__PERMUTATION;
    computation.request.dtype = n <= UINT64_C(1) << 32 ? SHUF_U32 : SHUF_U64;
    computation.request.permutation = timed_row(algorithm, n, seed, epoch);
    return computation;
}

/* A shuffle by a whole permutation. The caller sets the input. */
static inline struct shuf__computation timed_shuffle(enum shuf_algorithm algorithm, uint64_t n,
                                                     uint64_t seed, uint64_t epoch, uint64_t record)
{
    struct shuf__computation computation;
    memset(&computation, 0, sizeof computation);
    computation.request.kind = SHUF__SHUFFLE;
    computation.request.shuffle.permutation = timed_row(algorithm, n, seed, epoch);
    computation.request.shuffle.record = record;
    return computation;
}

/* Values 0 to count - 1 of stream 0: normal ones of mean 0 and standard deviation 1, exponential
 * ones of mean 1, bits that are 1 with probability 0.1, and integers below 1000003. */
static inline struct shuf__computation timed_stream(enum shuf__distribution distribution,
                                                    shuf_dtype dtype, uint64_t seed, uint64_t count)
{
    const enum shuf__parameters parameters = shuf__distribution_parameters(distribution);
    struct shuf__computation computation;
    memset(&computation, 0, sizeof computation);
    computation.request.kind = SHUF__STREAM;
    computation.request.dtype = dtype;
    computation.request.stream.distribution = distribution;
    computation.request.stream.mean = parameters == SHUF__MEAN          ? 1
                                      : parameters == SHUF__PROBABILITY ? 0.1
                                                                        : 0;
    computation.request.stream.std = parameters == SHUF__MEAN_AND_STD;
    computation.request.stream.bound = parameters == SHUF__BOUND ? 1000003 : 0;
    computation.request.stream.seed = seed;
    computation.request.stream.count = count;
    return computation;
}

#endif
