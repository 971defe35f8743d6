/* SPDX-License-Identifier: MIT
 *
 * The jobs that benchmarks time, for C and CUDA.
 */
#ifndef SHUF__BENCH_JOBS_H
#define SHUF__BENCH_JOBS_H

#include "backend.h"

#include <string.h>

static inline struct shuf__permutation job_row(enum shuf_algorithm algorithm, uint64_t n,
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

/* The whole permutation, one row, 8-byte values where n needs them. */
static inline struct shuf__job job_permutation(enum shuf_algorithm algorithm, uint64_t n,
                                               uint64_t seed, uint64_t epoch)
{
    struct shuf__job job;
    memset(&job, 0, sizeof job);
    job.request.kind = SHUF__PERMUTATION;
    job.request.dtype = n <= UINT64_C(1) << 32 ? SHUF_U32 : SHUF_U64;
    job.request.permutation = job_row(algorithm, n, seed, epoch);
    return job;
}

/* The input is the caller's to set. */
static inline struct shuf__job job_shuffle(enum shuf_algorithm algorithm, uint64_t n, uint64_t seed,
                                           uint64_t epoch, uint64_t record)
{
    struct shuf__job job;
    memset(&job, 0, sizeof job);
    job.request.kind = SHUF__SHUFFLE;
    job.request.shuffle.permutation = job_row(algorithm, n, seed, epoch);
    job.request.shuffle.record = record;
    return job;
}

/* Values 0 to count - 1 of stream 0, of mean 0 and standard deviation 1. */
static inline struct shuf__job job_stream(enum shuf__distribution distribution, shuf_dtype dtype,
                                          uint64_t seed, uint64_t count)
{
    struct shuf__job job;
    memset(&job, 0, sizeof job);
    job.request.kind = SHUF__STREAM;
    job.request.dtype = dtype;
    job.request.stream.distribution = distribution;
    job.request.stream.std = 1;
    job.request.stream.seed = seed;
    job.request.stream.count = count;
    return job;
}

#endif
