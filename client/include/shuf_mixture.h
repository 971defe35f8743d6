/* SPDX-License-Identifier: MIT
 *
 * Mixtures of data sets by weights, computed in this process. Included by shuf.h.
 *
 * A mixture is a function of the position: it says which record of which source stands there.
 * Positions are in blocks. After each whole block each source has its exact share, to less than
 * 1.68 records in the first stage; later stages compensate for the errors of those before. Within
 * a block the order of the sources is random. Each source runs through its epochs; each epoch is a
 * permutation of its own, uniform or windowed. docs/spec.md, "Mixtures", defines every value.
 *
 *     const shuf_source sources[] = {{.records = 8000000000}, {.records = 2000000}};
 *     const uint64_t weights[] = {7, 3};
 *     const shuf_stage stage = {0, weights};
 *     const shuf_mixture_request request = {
 *         .seed = 7, .sources = sources, .source_count = 2, .stages = &stage, .stage_count = 1};
 *     uint32_t source[20];
 *     uint64_t record[20];
 *     shuf_mixture *mixture;
 *     const shuf_mixed out = {.source = source, .record = record};
 *     if (shuf_mixture_make(&request, &mixture) != SHUF_OK ||
 *         shuf_mixture_fill(mixture, 0, 20, 1, 1, &out) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_message(NULL));
 *
 * A mixture does not change, and any number of threads may use it. The message of a failure is
 * shuf_message(NULL) of the same thread. All functions fail with SHUF_INVALID for arguments out of
 * range and with SHUF_NO_MEMORY.
 */
#ifndef SHUF_MIXTURE_H
#define SHUF_MIXTURE_H

#include "shuf_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUF_SOURCES_MOST = 4096 };

/* A data set. */
typedef struct shuf_source {
    uint64_t records;       /* 1 to 2^62; those of all sources together at most 2^62 */
    uint64_t epochs;        /* the source ends after so many; 0: never */
    uint64_t chunk, window; /* its epochs are windowed orders (shuf_permutation); both 0: uniform */
} shuf_source;

/* From the position `first` on, the mixture has these weights: one of each source, below 2^61 in
 * all. Only their ratios matter. A weight of 0 leaves its source out. When a source ends, the
 * others share its weight. A stage cuts the block in which it begins, and so changes the order
 * inside this block, also before `first`: add a stage to a run at least a block after the place
 * that the run has reached. */
typedef struct shuf_stage {
    uint64_t first; /* 0 for the first stage; below 2^62; ascending */
    const uint64_t *weights;
} shuf_stage;

typedef struct shuf_mixture_request {
    uint64_t seed; /* any */
    /* Positions of a block: from the number of sources to 2^20; 0: 4096. A single place takes time
     * in proportion to it. */
    uint64_t block;
    const shuf_source *sources;
    size_t source_count; /* 1 to SHUF_SOURCES_MOST */
    const shuf_stage *stages;
    size_t stage_count; /* at least 1 */
} shuf_mixture_request;

typedef struct shuf_mixture shuf_mixture;

/* The arrays are copied. Each source that ends begins a further stage, in which the others share
 * its weight. All stages together have at most 2^21 sources: with k sources and one stage given, at
 * least 2^21 / k of them may end at positions of their own. Such a plan takes some 0.4 s. */
SHUF_API shuf_status shuf_mixture_make(const shuf_mixture_request *request, shuf_mixture **mixture);

/* NULL is allowed. No other thread may use the mixture any more. */
SHUF_API void shuf_mixture_free(shuf_mixture *mixture);

/* The number of positions: 2^62 if not all sources of the last stage end. */
SHUF_API uint64_t shuf_mixture_length(const shuf_mixture *mixture);

/* Where a call writes, or from where it reads. Each array has one element for each position. */
typedef struct shuf_mixed {
    uint64_t *index;  /* of the record in all sources, one after the other */
    uint32_t *source; /* its source */
    uint64_t *epoch;  /* of the source */
    uint64_t *record; /* of the source */
} shuf_mixed;

/* Writes `count` places, at the positions first, first + stride, ..., to those arrays that are not
 * NULL. All positions are below the length; stride is at least 1. `threads` is as in
 * shuf_host_fill(). Can be interrupted. */
SHUF_API shuf_status shuf_mixture_fill(shuf_mixture *mixture, uint64_t first, size_t count,
                                       uint64_t stride, unsigned threads, const shuf_mixed *out);

/* The same in device memory, queued in a CUDA stream, as shuf_cuda_fill() (shuf_local.h): writes
 * the indices at `count` positions from `first` on, which are below 2^50. Only of uniform sources;
 * the stream may not be captured. The workspace has some 12 bytes for each position, at most 0.8
 * GB, and 100 bytes for each source. */
SHUF_API shuf_status shuf_cuda_mixture_workspace(const shuf_mixture *mixture, size_t count,
                                                 size_t *bytes);
SHUF_API shuf_status shuf_cuda_mixture_fill(const shuf_mixture *mixture, uint64_t first,
                                            size_t count, uint64_t *index, void *workspace,
                                            size_t workspace_bytes, void *stream);

/* The inverse: writes the position of each (source[i], epoch[i], record[i]), or UINT64_MAX for one
 * that the mixture does not have. Can be interrupted. */
SHUF_API shuf_status shuf_mixture_positions(const shuf_mixture *mixture, size_t count,
                                            const shuf_mixed *in, uint64_t *positions);

/* Writes how many records of each source stand before `position`, at most the length. */
SHUF_API shuf_status shuf_mixture_counts(const shuf_mixture *mixture, uint64_t position,
                                         uint64_t *counts);

/* Writes, for each source, the number of positions after which each of its records was there once,
 * or UINT64_MAX if that never happens. The least and the largest are the lengths of mixtures that
 * stop when the first source, or when all sources are exhausted. */
SHUF_API shuf_status shuf_mixture_exhausted(const shuf_mixture *mixture, uint64_t *positions);

#ifdef __cplusplus
}
#endif

#endif
