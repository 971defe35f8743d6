/* SPDX-License-Identifier: MIT
 *
 * The last step of windowed orders over unequal chunks: from numbers of a window to records. A
 * table of the window gives the last chunk that begins at the begin of the number's bucket or
 * before it. A binary search goes on from there; its number of steps is that of the fullest bucket.
 * Record x of chunk k of the window then is x + moves[k]. Compiled once for each instruction set;
 * the compiler makes vectors of these loops.
 */
#include "simd/simd_ops.h"

enum { PART = 512 }; /* numbers whose chunks are searched at once */

/* Additions wrap around, as moves may be negative. Numbers of chunks are signed: gathers of 32-bit
 * indices take signed ones. */
#define DEFINE_SEARCH(NAME, IN, OUT)                                                      \
    void SHUF__SIMD_NAME(NAME)(const struct shuf__chunk_map *map, const IN *in, OUT *out, \
                               size_t count)                                              \
    {                                                                                     \
        const int32_t *guide = map->guide;                                                \
        const IN *first = map->first;                                                     \
        const OUT *moves = map->moves;                                                    \
        const unsigned shift = map->shift;                                                \
        for (size_t done = 0; done < count; done += PART) {                               \
            const size_t part = count - done < PART ? count - done : PART;                \
            int32_t chunk[PART];                                                          \
            for (size_t i = 0; i < part; i++)                                             \
                chunk[i] = guide[in[done + i] >> shift];                                  \
            for (int32_t step = map->step; step > 0; step /= 2)                           \
                for (size_t i = 0; i < part; i++)                                         \
                    chunk[i] += first[chunk[i] + step] <= in[done + i] ? step : 0;        \
            for (size_t i = 0; i < part; i++)                                             \
                out[done + i] = (OUT)in[done + i] + moves[chunk[i]];                      \
        }                                                                                 \
    }

DEFINE_SEARCH(shuf__search_narrow, uint32_t, uint32_t)
DEFINE_SEARCH(shuf__search_widened, uint32_t, uint64_t)
DEFINE_SEARCH(shuf__search_wide, uint64_t, uint64_t)
