/* SPDX-License-Identifier: MIT
 *
 * One tile of a domain. A thread evaluates and compacts its values in the processor's cache.
 */
#ifndef SHUF__HOST_TILE_H
#define SHUF__HOST_TILE_H

#include "backend.h"
#include "rank_index.h"
#include "simd/simd_ops.h"

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

#endif
