/* SPDX-License-Identifier: MIT
 *
 * The structures of requests and results. Included by shuf.h.
 */
#ifndef SHUF_REQUEST_H
#define SHUF_REQUEST_H

#include "shuf_dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Permutations ---- */

/* Selects positions of the permutation. */
typedef enum shuf_view {
    SHUF_VIEW_ALL = 0,   /* 0 .. n - 1 */
    SHUF_VIEW_SLICE = 1, /* `count` positions: offset, offset + stride, ... */
    SHUF_VIEW_SHARD = 2, /* the positions of `rank` of `world` in PyTorch's DistributedSampler,
                          * from the rank's value number `step` on */
} shuf_view;

/* A request for a permutation. A field of 0 has its default. Only n, and the count of a SLICE, have
 * no default. */
typedef struct shuf_permutation {
    const char *algorithm; /* "primefold" (also for NULL), "philox24", "lcg"; not "" */
    uint64_t n;            /* permute [0, n): 1 to 2^62 */
    uint64_t seed;         /* any; independent of epoch */
    const char *key;       /* the name of a key of the daemon; seed is then 0. NULL, not "": the
                            * seed */
    uint64_t epoch;        /* any */
    uint64_t epochs;       /* rows, for epoch, epoch + 1, ... (mod 2^64); 0 means 1 */
    /* A windowed order: the records lie in chunks of `chunk` neighbours (the last chunk may be
     * shorter), the chunks are in random order, each `window` of them are a window, and the records
     * of a window are in random order. A reader needs the chunks of one window at a time, or of two
     * where it goes from one to the next. Both 0: a uniform permutation, as with one window for all
     * chunks. Only primefold. */
    uint64_t chunk, window;
    shuf_view view;
    /* SLICE, else 0: offset < n; count >= 1, without a default; a stride of 0 means 1;
     * offset + (count - 1) * stride < n. */
    uint64_t offset, count, stride;
    /* SHARD, else 0: rank < world; world is at most 2^62. The result has the values number step to
     * step + count - 1 of the rank. So a rank that has read `step` values of its epoch resumes
     * there. The length of a shard is n / world, rounded down with drop_last, and up without it.
     * `step` is at most this length. A `count` of 0 means all values from `step` on; if `step` is
     * the length, there are none. */
    uint64_t rank, world, step;
    bool drop_last; /* SHARD: cut the remainder instead of padding by wrapping */
    /* 0 gives u32 up to n = 2^32, even in a larger `out`; an array of uint64_t needs SHUF_U64. */
    shuf_dtype dtype;
    bool fingerprint; /* also compute the fingerprint; shuf_summarize() always does */
} shuf_permutation;

/* The direction of a look-up. */
typedef enum shuf_direction {
    SHUF_FORWARD = 0, /* at[i] is a position, out[i] the value there */
    SHUF_INVERSE = 1, /* at[i] is a value, out[i] its position */
} shuf_direction;

/* ---- Results ---- */

/* The shape of a result. The request determines it. */
typedef struct shuf_shape {
    uint64_t rows;    /* epochs of a permutation; else 1 */
    uint64_t count;   /* values in a row */
    shuf_dtype dtype; /* SHUF_AUTO only for records and buffers */
    uint64_t width;   /* bytes of a value (2, 4 or 8) or of a record; 1 for a buffer */
    uint64_t bytes;   /* rows * count * width */
} shuf_shape;

/* The distribution of random numbers; 0 for a permutation. */
typedef enum {
    SHUF_GAUSS = 1,   /* normal, with mean and standard deviation: f64, f32, f16 or bf16 */
    SHUF_UNIFORM = 2, /* f64 or f32: multiples of 2^-53 or 2^-24 in [0, 1); u32, u64: all values */
    SHUF_EXPONENTIAL = 4, /* positive, with a mean: f64, or f32, which may underflow */
    /* Independent bits, each 1 with the probability `mean`. A value is a word of them: value i has
     * bits 32 i to 32 i + 31 as u32, and 64 i to 64 i + 63 as u64, the first one lowest. */
    SHUF_BERNOULLI = 5,
    SHUF_INTEGERS = 6, /* integers from 0 to bound - 1, all equally likely: u32 or u64 */
} shuf_distribution;

/* The method of GAUSS. Streams of different methods are independent. */
typedef enum {
    SHUF_TABLE = 0,      /* sums of table entries; on a GPU the faster method */
    SHUF_BOX_MULLER = 1, /* Box and Muller: pairs, each from a radius and an angle */
} shuf_method;

/* Moments of N numbers x in double precision: mean = sum(x) / N, variance = m2, skewness = m3 /
 * m2^(3/2), kurtosis = m4 / m2^2 (3 for a normal distribution), where mk = sum((x - mean)^k) / N.
 * Skewness and kurtosis are NaN if m2 is 0. The last digits depend on the backend. */
typedef struct shuf_moments {
    double mean, variance, skewness, kurtosis;
    double least, largest; /* of x */
} shuf_moments;

enum { SHUF_SAMPLES = 4 };

typedef struct shuf_result {
    shuf_shape shape;
    char algorithm[32];             /* of a permutation or shuffle; else "" */
    shuf_distribution distribution; /* of numbers; else 0 */
    shuf_method method;             /* of GAUSS; else 0 */
    char backend[16];               /* "cpu", "cuda" */
    char device[128];               /* name of the device */
    uint64_t device_ns;             /* computation time on the device, in nanoseconds */
    uint64_t fingerprint;           /* shuf/fingerprint.h; 0 unless requested */
    bool shared;                    /* cached, or computed for another request too */
    unsigned n_first, n_last;       /* lengths of first and last */
    /* First and last values of the whole result; for floating-point types, their bits. A mapped
     * result has them only with a fingerprint or moments, copied results and summaries always, and
     * records never. */
    uint64_t first[SHUF_SAMPLES], last[SHUF_SAMPLES];
    shuf_moments moments; /* of numbers; 0 unless requested */
} shuf_result;

/* ---- Numbers ---- */

/* A request for the values offset to offset + count - 1 of a stream. Value i of a stream is a
 * function of distribution, method, seed, stream, mean, std, bound, dtype and i, so any part of a
 * stream can be requested. Different seeds, and different streams of a seed, are independent. A
 * stream has 2^62 values. Values of two dtypes share random bits: number i of UNIFORM, BERNOULLI or
 * INTEGERS with 64 bits has those of numbers 2i and 2i + 1 with 32; numbers 2m and 2m + 1 of
 * SHUF_BOX_MULLER or EXPONENTIAL as SHUF_F64 have those of numbers 4m to 4m + 3 of the others; with
 * mean 0 and std 1 number i of the table method is the same, rounded, with others nearly the same.
 * Streams of BERNOULLI with two means share random bits too, and a bit that is 1 for a mean is 1
 * for every larger mean. So do streams of INTEGERS with two bounds. Other means and deviations only
 * scale the same numbers. */
typedef struct shuf_numbers {
    shuf_distribution distribution; /* no default */
    uint64_t seed, stream;          /* any */
    const char *key;                /* as in shuf_permutation */
    uint64_t offset, count;         /* count >= 1, no default; offset + count <= 2^62 */
    /* GAUSS: |mean| <= 2^100; EXPONENTIAL: 2^-100 <= mean <= 2^100; BERNOULLI: 0 <= mean <= 1,
     * rounded to a multiple of 2^-63; else 0. */
    double mean;
    /* GAUSS: 2^-100 <= std <= 2^100, no default; with SHUF_F16 also |mean| + 16 std <= 65504; else
     * 0. If std is far below the distance of neighbouring numbers of the dtype, all values are
     * one number, or two neighbouring numbers. */
    double std;
    uint64_t bound; /* INTEGERS: 1 to 2^32 with SHUF_U32, to 2^64 - 1 with SHUF_U64; else 0 */
    shuf_dtype dtype;
    bool fingerprint;   /* also compute the fingerprint; shuf_summarize() always does */
    bool moments;       /* also compute the moments */
    shuf_method method; /* GAUSS; else 0 */
} shuf_numbers;

/* ---- Records ---- */

struct shuf_lease;

/* A request to shuffle an array x of n records of `record` bytes: y[i] = x[p(i)], where p is the
 * permutation that shuf_copy() writes for the same algorithm, n, seed and epoch. With
 * `inverse`, y[p(i)] = x[i], which undoes the shuffle. Records are opaque bytes. */
typedef struct shuf_records {
    const char *algorithm; /* as in shuf_permutation */
    uint64_t n;            /* 1 to 2^62, no default */
    uint64_t record;       /* bytes, at least 1, no default; n * record < 2^63 */
    uint64_t seed, epoch;  /* any */
    const char *key;       /* as in shuf_permutation */
    bool inverse;
    /* Of shuf_lease_take() and shuf_copy(): the lease that has x. A buffer, or any other lease of
     * the handle, except one with the transport SHUF_INLINE. shuf_shuffle() ignores it. */
    const struct shuf_lease *input;
} shuf_records;

/* ---- Ranks ---- */

/* A request for the plan by which `rank` exchanges records with the other ranks, so that all
 * records together are shuffled. The n records lie in the order of the ranks: before the exchange,
 * rank r has input[r] of them. After the exchange, rank r has output[r] records. All outputs
 * together, in the order of the ranks, are the shuffle of all inputs: y[i] = x[p(i)], or with
 * `inverse` y[p(i)] = x[i], as in shuf_records.
 *
 * The plan has lists of numbers of one type, one after the other. The type
 * is SHUF_U32 if it holds all numbers, else SHUF_U64.
 *
 *     to[world]        how many records go to each rank
 *     from[world]      how many records come from each rank
 *     order[input]     the indices of the rank's own records, in the order in which it sends them:
 *                      first those for rank 0, then those for rank 1, ...
 *     places[output]   the places for the records that arrive, in the same order: first those from
 *                      rank 0, then those from rank 1, ...
 *
 * Sender and receiver have the records between them in the same order, so an all-to-all needs only
 * the counts. With `part` the plan is one-sided, for ranks that read or write the memory of each
 * other: three lists of SHUF_U32, which shuf_request(3) describes.
 *
 *     begins[parts][windows + 1]   where the records of each window begin in those of a part
 *     records[output]              the numbers of the records on their ranks
 *     indices[output]              for each place, the index of its record in those of its part
 *
 * Work and memory grow with the records of the rank, not with n. A GPU
 * computes the plans that are leased in its memory. */
typedef struct shuf_ranks {
    const char *algorithm; /* "primefold" (also for NULL) */
    uint64_t n;            /* 1 to 2^62, no default */
    uint64_t seed, epoch;  /* any */
    const char *key;       /* as in shuf_permutation */
    bool inverse;
    uint64_t rank, world; /* rank < world; world has no default: 1 to 4000, without sizes to 2^20 */
    const uint64_t *input;  /* `world` sizes with the sum n; NULL: equal parts, which differ by 1 at
                             * most, the larger ones first */
    const uint64_t *output; /* as `input`; NULL: the sizes of the input */
    uint64_t part; /* 0: the plan of both sides; else a one-sided plan, in parts of so many places:
                    * a multiple of 65536 up to 2^31. A one-sided plan is for at most 64 ranks of at
                    * most 2^32 records. */
} shuf_ranks;

/* ---- Requests ---- */

typedef enum shuf_kind {
    SHUF_PERMUTATION = 0, /* `permutation` */
    SHUF_NUMBERS = 1,     /* `numbers` */
    SHUF_RANKS = 2,       /* `ranks`: the plan of an exchange */
    SHUF_RECORDS = 3,     /* `records`: the shuffle of a lease */
    SHUF_BUFFER = 4,      /* `bytes`: memory for this process to fill; it can only be leased */
    SHUF_OTHER_KIND = 5,  /* of a newer daemon, only in shuf_leases() */
} shuf_kind;

/* A request for a result of one kind. For example {.permutation = {.n = 1000, .seed = 7}}, or
 * {SHUF_BUFFER, .bytes = 4096}. */
typedef struct shuf_request {
    shuf_kind kind;
    __extension__ union { /* of C11 */
        shuf_permutation permutation;
        shuf_numbers numbers;
        shuf_ranks ranks;
        shuf_records records;
        uint64_t bytes; /* at least 1 */
    };
} shuf_request;

#endif
