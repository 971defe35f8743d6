/* SPDX-License-Identifier: MIT
 *
 * Weighted draws, with and without replacement, computed in this process. Included by shuf.h.
 *
 * A draw is an index, with a probability in proportion to its weight, with replacement. Draw number
 * i is a function of the weights, a seed, an epoch and i: any draw can be the first. docs/spec.md,
 * "Weighted draws", defines every value. Each probability is off by less than 2^-60.
 *
 *     const double weight[] = {0.5, 0.0, 3.0, 1.5};
 *     shuf_weights *weights;
 *     uint64_t index[20];
 *     if (shuf_weights_make(weight, SHUF_F64, 4, &weights) != SHUF_OK ||
 *         shuf_weights_draw(weights, 7, 0, 0, 20, 1, 1, index) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_message(NULL));
 *
 * An object does not change, and any number of threads may use it. The message of a failure is
 * shuf_message(NULL) of the same thread. All functions fail with SHUF_INVALID for arguments out of
 * range, with SHUF_NO_MEMORY, and with SHUF_CANCELLED if the function of shuf_set_interrupt() ends
 * them.
 */
#ifndef SHUF_WEIGHTS_H
#define SHUF_WEIGHTS_H

#include "shuf_dtype.h"
#include "shuf_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A table of weights. */
typedef struct shuf_weights shuf_weights;

/* Makes the table of `count` weights, 1 to 2^32, of the type SHUF_F64, SHUF_F32 or SHUF_U64. They
 * are finite, at least 0, and not all 0. Only their values count, not their type. The table has 8
 * bytes for each weight, and their number is rounded up to a power of two. A weight takes some tens
 * of nanoseconds, in the caller's thread. The array is not used afterwards. */
SHUF_API shuf_status shuf_weights_make(const void *values, shuf_dtype type, uint64_t count,
                                       shuf_weights **weights);

/* NULL is allowed. No other thread may use the weights any more. */
SHUF_API void shuf_weights_free(shuf_weights *weights);

/* Writes `count` draws, those with the numbers first, first + stride, ..., all below 2^62; stride
 * is at least 1. `threads` is as in shuf_host_fill(). */
SHUF_API shuf_status shuf_weights_draw(const shuf_weights *weights, uint64_t seed, uint64_t epoch,
                                       uint64_t first, size_t count, uint64_t stride,
                                       unsigned threads, uint64_t *out);

/* Writes `sample` different indices, in the order in which successive draws without replacement
 * give them; a larger sample begins with the same ones. At most as many as weights are above 0.
 * Weights below 2^-1000 of the largest count as equal, and some below 2^-999 too. Takes some tens
 * of nanoseconds for each weight, in the caller's thread, and memory of 32 bytes for each index of
 * the sample. */
SHUF_API shuf_status shuf_weights_sample(const void *values, shuf_dtype type, uint64_t count,
                                         uint64_t seed, uint64_t epoch, size_t sample,
                                         uint64_t *out);

/* The same in device memory, queued in a CUDA stream, as shuf_cuda_fill() (shuf_local.h), with the
 * same draws and samples. The memory of weights and results is on one device, and begins at a
 * multiple of 16 bytes. There are at most 2^30 weights. The two functions that read them wait for
 * the stream, so it may not be captured. Their workspace is aligned to 256 bytes, and has no
 * meaning before or after the work. */

/* Sets *bytes to the workspace of shuf_cuda_weights_make() on the current device. It has about 16
 * bytes for each column of the table. */
SHUF_API shuf_status shuf_cuda_weights_workspace(uint64_t count, size_t *bytes);

/* Makes the table of shuf_weights_make() in `table`: 8 bytes for each weight, with the number of
 * weights rounded up to a power of two. The table belongs to the caller. A copy of it serves too.
 */
SHUF_API shuf_status shuf_cuda_weights_make(const void *values, shuf_dtype type, uint64_t count,
                                            uint64_t *table, size_t table_bytes, void *workspace,
                                            size_t workspace_bytes, void *stream);

/* Writes draws as shuf_weights_draw(), from a table of so many weights. */
SHUF_API shuf_status shuf_cuda_weights_draw(const uint64_t *table, uint64_t weights, uint64_t seed,
                                            uint64_t epoch, uint64_t first, size_t count,
                                            uint64_t stride, uint64_t *out, void *stream);

/* Writes a sample as shuf_weights_sample(). Its workspace has about 24 bytes for each weight. */
SHUF_API shuf_status shuf_cuda_weights_sample_workspace(uint64_t count, size_t *bytes);
SHUF_API shuf_status shuf_cuda_weights_sample(const void *values, shuf_dtype type, uint64_t count,
                                              uint64_t seed, uint64_t epoch, size_t sample,
                                              uint64_t *out, void *workspace,
                                              size_t workspace_bytes, void *stream);

#ifdef __cplusplus
}
#endif

#endif
