/* SPDX-License-Identifier: MIT
 *
 * Windowed orders over chunks with sizes of their own: the plan of one order, single look-ups, and
 * ranges. docs/spec.md, "Windowed orders".
 */
#ifndef SHUF__HOST_CHUNKS_H
#define SHUF__HOST_CHUNKS_H

#include "backend.h"
#include "shuf/primefold.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUF__CHUNKS_MOST = 1 << 24 };

/* A slot is a place in the order of the chunks. The slots window * j to window * (j + 1) - 1 are
 * window j. If all chunks are in one window, the order of the chunks does not matter, and each has
 * the slot of its own number. */
struct shuf__chunks {
    const struct shuf__simd_ops *simd;
    uint64_t n, window;
    uint32_t count;
    bool is_uniform;           /* all chunks are in one window */
    shuf_primefold slot_order; /* from slots to chunks, unless is_uniform */
    shuf_key key;              /* of the orders within windows */
    uint64_t epoch;     /* of the order within window 0; the next window has the next epoch */
    uint64_t *record;   /* of each chunk: its first record; then n */
    uint64_t *position; /* of each slot: its first position; then n */
    uint32_t *chunk;    /* of each slot */
};

struct shuf__chunks_request {
    uint64_t seed, epoch;
    const uint64_t *sizes;
    size_t count;
    uint64_t window;
};

/* `computation` has only the caller's question whether it is cancelled, here and below; then these
 * functions fail with SHUF_CANCELLED. */
shuf_status shuf__chunks_make(struct shuf__chunks *c, const struct shuf__simd_ops *simd,
                              const struct shuf__chunks_request *request,
                              const struct shuf__computation *computation,
                              struct shuf__error *error);
void shuf__chunks_free(struct shuf__chunks *c);

/* Replaces positions below n by their records, or records by their positions. */
shuf_status shuf__chunks_look_up(const struct shuf__chunks *c, int threads,
                                 const struct shuf__computation *computation, bool inverse,
                                 uint64_t *place, size_t count, struct shuf__error *error);

/* Positions first, first + stride, ..., which are all below n. */
struct shuf__chunks_range {
    uint64_t first, count, stride;
};

/* Writes the records at the positions, as values of `width` bytes, 4 or 8. */
shuf_status shuf__chunks_fill(const struct shuf__chunks *c, int threads,
                              const struct shuf__computation *computation,
                              const struct shuf__chunks_range *range, unsigned width, void *out,
                              struct shuf__error *error);

/* Writes the numbers of the chunks of these records, each once, in the order of the positions. */
shuf_status shuf__chunks_needed(const struct shuf__chunks *c,
                                const struct shuf__computation *computation,
                                const struct shuf__chunks_range *range, uint64_t *numbers,
                                size_t *found, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
