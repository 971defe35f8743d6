/* SPDX-License-Identifier: MIT
 *
 * See tile.h.
 */
#include "host/tile.h"

#include <assert.h>
#include <string.h>

/* ---- Values ---- */

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

/* ---- Records ---- */

enum {
    LINE = 64,
    LARGE = 16, /* bytes; EXPECTED bytes of a larger record are prefetched AHEAD records early */
    AHEAD = 8,
    EXPECTED = 512,
};

struct move {
    char *restrict out;
    const char *restrict in;
    const struct shuf__tile_places *places;
};

static inline __attribute__((always_inline)) uint64_t place(const struct shuf__tile_places *places,
                                                            bool narrow, size_t i)
{
    return narrow ? ((const uint32_t *)places->p)[i] : ((const uint64_t *)places->p)[i];
}

/* Prefetches the first EXPECTED bytes of a record. The processor itself prefetches small records,
 * and the rest of large ones. */
static inline __attribute__((always_inline)) void expect(const char *from, size_t record)
{
    for (size_t k = 0; k < record && k < EXPECTED; k += LINE)
        __builtin_prefetch(from + k);
}

/* Callers pass constants for `narrow` and `record`, so each usual size has its own loop. Such a
 * loop moves a record with one or two instructions, without a call of memcpy. */
static inline __attribute__((always_inline)) void gather(const struct move *m, bool narrow,
                                                         size_t record)
{
    char *to = m->out + m->places->first * record;
    for (size_t i = 0; i < m->places->count; i++) {
        if (record > LARGE && i + AHEAD < m->places->count)
            expect(m->in + place(m->places, narrow, i + AHEAD) * record, record);
        memcpy(to + i * record, m->in + place(m->places, narrow, i) * record, record);
    }
}

static inline __attribute__((always_inline)) void scatter(const struct move *m, bool narrow,
                                                          size_t record)
{
    const char *from = m->in + m->places->first * record;
    for (size_t i = 0; i < m->places->count; i++)
        memcpy(m->out + place(m->places, narrow, i) * record, from + i * record, record);
}

static inline __attribute__((always_inline)) void move(const struct move *m, bool inverse,
                                                       size_t record)
{
    if (inverse && m->places->narrow)
        scatter(m, true, record);
    else if (inverse)
        scatter(m, false, record);
    else if (m->places->narrow)
        gather(m, true, record);
    else
        gather(m, false, record);
}

void shuf__move(const struct shuf__shuffle *shuffle, const void *in,
                const struct shuf__tile_places *places, void *out)
{
    const struct move m = {out, in, places};
    switch (shuffle->record) {
    case 1:
        move(&m, shuffle->inverse, 1);
        return;
    case 2:
        move(&m, shuffle->inverse, 2);
        return;
    case 4:
        move(&m, shuffle->inverse, 4);
        return;
    case 8:
        move(&m, shuffle->inverse, 8);
        return;
    case 12:
        move(&m, shuffle->inverse, 12);
        return;
    case 16:
        move(&m, shuffle->inverse, 16);
        return;
    default:
        move(&m, shuffle->inverse, shuffle->record);
    }
}

void shuf__move_piece(const struct shuf__shuffle *shuffle, const void *in,
                      const struct shuf__tile_places *places, uint64_t offset, size_t bytes,
                      void *out)
{
    const uint64_t here = places->first * shuffle->record + offset;
    const uint64_t there = place(places, places->narrow, 0) * shuffle->record + offset;
    memcpy((char *)out + (shuffle->inverse ? there : here),
           (const char *)in + (shuffle->inverse ? here : there), bytes);
}
