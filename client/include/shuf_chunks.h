/* SPDX-License-Identifier: MIT
 *
 * Windowed orders over chunks with sizes of their own, such as shards of a data set, computed in
 * this process. Included by shuf.h. For chunks of one size, `chunk` and `window` of a
 * shuf_permutation give the same order without a list.
 *
 * The chunks are in random order, and each `window` of them in this order are a window. All records
 * of a window are in random order. So a reader of neighbouring positions needs at most `window`
 * chunks at a time, or twice as many where it goes from one window to the next. docs/spec.md,
 * "Windowed orders", defines every value.
 *
 *     const uint64_t sizes[] = {1000, 730, 1210, 15};
 *     const shuf_chunks_request request = {.seed = 7, .sizes = sizes, .count = 4, .window = 2};
 *     uint32_t order[2955];
 *     shuf_chunks *chunks;
 *     if (shuf_chunks_make(&request, &chunks) != SHUF_OK ||
 *         shuf_chunks_fill(chunks, 0, 2955, 1, 1, SHUF_U32, order) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_message(NULL));
 *
 * An object does not change, and any number of threads may use it. The message of a failure is
 * shuf_message(NULL) of the same thread. All functions fail with SHUF_INVALID for arguments out of
 * range, with SHUF_NO_MEMORY, and with SHUF_CANCELLED if the function of shuf_set_interrupt() ends
 * them.
 */
#ifndef SHUF_CHUNKS_H
#define SHUF_CHUNKS_H

#include "shuf_dtype.h"
#include "shuf_request.h"
#include "shuf_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shuf_chunks_request {
    uint64_t seed, epoch;  /* any */
    const uint64_t *sizes; /* the records of each chunk, at least 1; of all at most 2^62 */
    size_t count;          /* chunks, 1 to 2^24 */
    uint64_t window;       /* at least 1; with all chunks in one window, the order is uniform */
} shuf_chunks_request;

/* One order: that of the seed and the epoch. */
typedef struct shuf_chunks shuf_chunks;

/* Takes some tens of nanoseconds and 20 bytes for each chunk. The sizes are not used afterwards. */
SHUF_API shuf_status shuf_chunks_make(const shuf_chunks_request *request, shuf_chunks **chunks);

/* NULL is allowed. No other thread may use the object any more. */
SHUF_API void shuf_chunks_free(shuf_chunks *chunks);

/* The number of records and of positions: the sum of the sizes. */
SHUF_API uint64_t shuf_chunks_length(const shuf_chunks *chunks);

/* Writes the records at `count` positions: first, first + stride, ..., all below the length; stride
 * is at least 1. `dtype` is SHUF_U32, for a length of at most 2^32, or SHUF_U64 or SHUF_I64.
 * `threads` is as in shuf_host_fill(). */
SHUF_API shuf_status shuf_chunks_fill(const shuf_chunks *chunks, uint64_t first, size_t count,
                                      uint64_t stride, unsigned threads, shuf_dtype dtype,
                                      void *out);

/* Writes the records at positions, or with SHUF_INVERSE the positions of records: `count` of them,
 * in any order, also repeated. `at` and `out` may be the same array. A look-up takes some
 * microseconds, and less in the window of the one before. */
SHUF_API shuf_status shuf_chunks_index(const shuf_chunks *chunks, shuf_direction direction,
                                       unsigned threads, const uint64_t *at, size_t count,
                                       uint64_t *out);

/* Writes the numbers of the chunks that have the records at the positions of shuf_chunks_fill(),
 * each once, in the order in which a reader first needs them, and sets *found to their number.
 * `numbers` has room for `count` of them, or for all chunks if these are fewer. */
SHUF_API shuf_status shuf_chunks_needed(const shuf_chunks *chunks, uint64_t first, size_t count,
                                        uint64_t stride, uint64_t *numbers, size_t *found);

#ifdef __cplusplus
}
#endif

#endif
