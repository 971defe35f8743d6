/* SPDX-License-Identifier: MIT
 *
 * Values of a permutation that a thread evaluates together: one tile of a domain, which it also
 * compacts in the processor's cache; the records that it moves by them; and the values at
 * neighbouring positions.
 */
#ifndef SHUF__HOST_TILE_H
#define SHUF__HOST_TILE_H

#include "backend.h"
#include "rank_index.h"
#include "simd/simd_ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__TILE = SHUF__RANK_INDEX_TILE }; /* 128 KiB of wide values: much less than an L2 */

struct shuf__tile {
    _Alignas(64) union {
        uint32_t narrow[SHUF__TILE];
        uint64_t wide[SHUF__TILE];
    };
};

/* Makes the bijection of row number `row`. `shape` is the shape of p->n; only primefold needs it.
 */
void shuf__bijection_make(const struct shuf__permutation *p, uint64_t row,
                          const shuf_primefold_shape *shape, union shuf__bijection *f);

/* Whether values are evaluated in 32 bits: B <= 32. For algorithms with compaction. */
bool shuf__tile_is_narrow(const struct shuf__permutation *p);

/* Writes the values below n of tile number `index`, in order, to the front of `tile`. Returns the
 * number of these values. */
size_t shuf__tile_fill(const struct shuf__simd_ops *simd, const struct shuf__permutation *p,
                       const union shuf__bijection *f, uint64_t index, struct shuf__tile *tile);

/* ---- The innermost loop of a shuffle: records to or from places ---- */

/* The `count` places p(first), p(first + 1), ... */
struct shuf__tile_places {
    bool narrow;
    const void *p; /* uint32_t if narrow, else uint64_t */
    uint64_t first;
    size_t count;
};

/* Copies record p(i) of `in` to record i of `out`. With shuffle->inverse it copies record i of `in`
 * to record p(i) of `out`. */
void shuf__move(const struct shuf__shuffle *shuffle, const void *in,
                const struct shuf__tile_places *places, void *out);

/* Does the same as shuf__move() for one piece of the first record: `bytes` bytes from `offset` on.
 */
void shuf__move_piece(const struct shuf__shuffle *shuffle, const void *in,
                      const struct shuf__tile_places *places, uint64_t offset, size_t bytes,
                      void *out);

/* ---- Neighbouring positions, for the plans of exchanges ---- */

enum { SHUF__NEIGHBOURS = 2048 }; /* most values of a call */

struct shuf__neighbours {
    const struct shuf__simd_ops *simd;
    union shuf__bijection f; /* of primefold, or its inverse */
    bool narrow;             /* whether values have 32 bits */
};

static inline struct shuf__neighbours shuf__neighbours_make(const struct shuf__simd_ops *simd,
                                                            const struct shuf__permutation *p,
                                                            bool inverse)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(p->n);
    struct shuf__neighbours of = {.simd = simd, .narrow = shuf__primefold_word_bits(&shape) <= 32};
    shuf__bijection_make(p, 0, &shape, &of.f);
    if (inverse)
        shuf__primefold_invert(&of.f.primefold);
    return of;
}

/* values[i] = f(first + i) */
static inline void shuf__neighbours_evaluate(const struct shuf__neighbours *of, uint64_t first,
                                             size_t count, uint64_t values[SHUF__NEIGHBOURS])
{
    uint32_t narrow[SHUF__NEIGHBOURS];
    if (!of->narrow) {
        of->simd->wide[SHUF_ALGORITHM_PRIMEFOLD](&of->f, first, 1, values, count);
        return;
    }
    of->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&of->f, (uint32_t)first, 1, narrow, count);
    for (size_t i = 0; i < count; i++)
        values[i] = narrow[i];
}

#endif
