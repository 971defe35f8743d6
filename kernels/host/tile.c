/* SPDX-License-Identifier: MIT
 *
 * See tile.h.
 */
#include "host/tile.h"

#include <assert.h>

void shuf__bijection_make(const struct shuf__permutation *p, uint64_t row,
                          const shuf_primefold_shape *shape, union shuf__bijection *f)
{
    const shuf_key key = shuf__permutation_key(p);
    switch (p->algorithm) {
    case SHUF_ALGORITHM_PRIMEFOLD:
        shuf__primefold_make(&f->primefold, shape, key, p->epoch + row);
        return;
    case SHUF_ALGORITHM_PHILOX24:
        f->philox24 = shuf_philox24_make_keyed(p->n, key, p->epoch + row);
        return;
    case SHUF_ALGORITHM_LCG:
        f->lcg = shuf_lcg_make_keyed(p->n, key, p->epoch + row);
        return;
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    assert(!"an algorithm without a bijection");
}

bool shuf__tile_is_narrow(const struct shuf__permutation *p)
{
    return shuf_domain_bits(p->n) <= 32;
}

size_t shuf__tile_fill(const struct shuf__simd_ops *simd, const struct shuf__permutation *p,
                       const union shuf__bijection *f, uint64_t index, struct shuf__tile *tile)
{
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(p->n), x0 = index * SHUF__TILE;
    const size_t count = domain - x0 < SHUF__TILE ? domain - x0 : SHUF__TILE;
    if (shuf__tile_is_narrow(p)) {
        simd->narrow[p->algorithm](f, (uint32_t)x0, 1, tile->narrow, count);
        return simd->compact_narrow(tile->narrow, count, (uint32_t)p->n);
    }
    simd->wide[p->algorithm](f, x0, 1, tile->wide, count);
    return simd->compact_wide(tile->wide, count, p->n);
}
