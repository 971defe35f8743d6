/* SPDX-License-Identifier: MIT
 *
 * Values of a permutation at neighbouring positions, for the plans of exchanges.
 */
#ifndef SHUF__HOST_NEIGHBOURS_H
#define SHUF__HOST_NEIGHBOURS_H

#include "host/primefold_shape.h"
#include "host/tile.h"
#include "simd/simd_ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
