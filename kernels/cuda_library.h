/* SPDX-License-Identifier: MIT
 *
 * libshuf-cuda13.so, the library with all code for GPUs: the number is the major version of CUDA
 * that has built it, and several may be installed. The daemon loads one for its backend, and
 * libshuf for the computations in its own process. So neither of them needs CUDA to start. The
 * library exports only one table, `shuf__cuda`.
 *
 * All functions of the table but `ops` queue work in the caller's CUDA stream, and return before it
 * is done. They use the device of `out`, allocate no device memory, and do not synchronise, so a
 * CUDA graph can capture them. Mixtures, weights, and windowed orders with few values are the
 * exceptions: the host computes a part of them, so they refuse a captured stream. Thread-safe.
 */
#ifndef SHUF__CUDA_LIBRARY_H
#define SHUF__CUDA_LIBRARY_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The major versions of CUDA with which the library can be built. */
enum { SHUF__CUDA_OLDEST = 11, SHUF__CUDA_NEWEST = 13 };

/* Scratch memory of a computation, in device memory at a multiple of 256 bytes. */
struct shuf__scratch_memory {
    void *memory;
    size_t bytes;
};

/* The structs that both copies of the code share. The table is the first one, so a shorter table
 * differs in its first size, and nobody reads behind its end. */
#define SHUF__CUDA_STRUCTS(X) \
    X(cuda_library)           \
    X(cuda_weights)           \
    X(scratch_memory)         \
    X(request)                \
    X(error)                  \
    X(mixture)                \
    X(data_set)               \
    X(stage)                  \
    X(weight_array)           \
    X(backend_ops)            \
    X(backend)                \
    X(computation)            \
    X(block)                  \
    X(workspace)              \
    X(sums)                   \
    X(pass)                   \
    X(rank_index)             \
    X(rank_index_limits)

#define SHUF__CUDA_ONE(name) +1
enum { SHUF__CUDA_SIZES = SHUF__CUDA_STRUCTS(SHUF__CUDA_ONE) };
#undef SHUF__CUDA_ONE

#define SHUF__CUDA_SIZE_OF(name) sizeof(struct shuf__##name),

/* Their sizes in this copy of the code. */
extern const size_t shuf__cuda_sizes[SHUF__CUDA_SIZES];

struct shuf__mixture;
struct shuf__weight_array;

/* Weighted draws and samples, as host/weights.h has them. The weights, the table and the results
 * are in device memory. */
struct shuf__cuda_weights {
    /* The scratch memory of table() and sample() for so many weights. */
    shuf_status (*table_bytes)(uint64_t count, size_t *bytes, struct shuf__error *error);
    shuf_status (*sample_bytes)(uint64_t count, size_t *bytes, struct shuf__error *error);
    /* Makes the columns of a table. Both table() and sample() wait for the stream, because the
     * host needs sums of the weights. */
    shuf_status (*table)(const struct shuf__weight_array *weights, uint64_t *column,
                         const struct shuf__scratch_memory *scratch, void *stream,
                         struct shuf__error *error);
    /* Writes draws from a table of 2^bits columns. */
    shuf_status (*draw)(const uint64_t *column, unsigned bits, uint64_t seed, uint64_t epoch,
                        uint64_t first, uint64_t count, uint64_t stride, uint64_t *out,
                        void *stream, struct shuf__error *error);
    shuf_status (*sample)(const struct shuf__weight_array *weights, uint64_t seed, uint64_t epoch,
                          uint64_t sample, uint64_t *out,
                          const struct shuf__scratch_memory *scratch, void *stream,
                          struct shuf__error *error);
};

struct shuf__cuda_library {
    /* Both copies of the code must be of one build, because they share structs. */
    const char *version;
    size_t sizes[SHUF__CUDA_SIZES]; /* shuf__cuda_sizes there */

    const struct shuf__backend_ops *ops;

    /* The scratch memory that compute() needs, in bytes. Fails with SHUF_INVALID for a request that
     * compute() refuses. */
    shuf_status (*scratch_bytes)(const struct shuf__request *request, size_t *bytes,
                                 struct shuf__error *error);
    /* Fills `out` with the result of a PERMUTATION, STREAM or SHUFFLE. `in`: the records of a
     * shuffle. `out` begins at a multiple of 16 bytes, and so does `in`. */
    shuf_status (*compute)(const struct shuf__request *request, const void *in, void *out,
                           const struct shuf__scratch_memory *scratch, void *stream,
                           struct shuf__error *error);
    /* Does a LOOK_UP with primefold: out[i] for at[i], which are numbers of `width` bytes, 4 or 8,
     * in device memory. An at[i] of n or more gives the largest number of its type. */
    shuf_status (*look_up)(const struct shuf__request *request, unsigned width, const void *at,
                           void *out, size_t count, void *stream, struct shuf__error *error);
    /* Writes the fingerprint of `count` values of `width` bytes to *sum in device memory. */
    shuf_status (*fingerprint)(const void *values, unsigned width, uint64_t count, uint64_t *sum,
                               void *stream, struct shuf__error *error);
    /* The scratch memory that mixture() needs for so many places. */
    size_t (*mixture_bytes)(const struct shuf__mixture *mixture, uint64_t count);
    /* Writes the indices of `count` records, from position `first` on. Fails with SHUF_INVALID for
     * windowed sources, and while the stream is captured. */
    shuf_status (*mixture)(const struct shuf__mixture *mixture, uint64_t first, uint64_t count,
                           uint64_t *index, const struct shuf__scratch_memory *scratch,
                           void *stream, struct shuf__error *error);
    const struct shuf__cuda_weights *weights;
};

/* The newest installed library that the driver can run, which is loaded once in a process. NULL
 * with SHUF_DEVICE if there is none, or if it is of another build of shufd. Thread-safe. */
const struct shuf__cuda_library *shuf__cuda_library(struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
