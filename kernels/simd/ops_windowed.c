/* SPDX-License-Identifier: MIT
 *
 * The last step of windowed orders (shuf/windowed.h): from numbers of a window to records. A list
 * has, for each chunk of the window, how far the order of the chunks moves it: record x of chunk k
 * of the window becomes x + moves[k]. Compiled once for each instruction set; the compiler makes
 * vectors of these loops.
 */
#include "simd/simd_ops.h"

/* Additions wrap around, as moves may be negative. */
void SHUF__SIMD_NAME(shuf__records_narrow)(const struct shuf__window_map *map,
                                           const uint32_t *restrict moves, const uint32_t *in,
                                           uint32_t *out, size_t count)
{
    const uint32_t gap_at = (uint32_t)map->gap_at, gap = (uint32_t)map->gap;
    const uint64_t multiplier = map->multiplier;
    const unsigned shift = map->shift;
    for (size_t i = 0; i < count; i++) {
        const uint32_t x = in[i] + (in[i] >= gap_at ? gap : 0);
        out[i] = x + moves[(uint32_t)(x * multiplier >> shift)];
    }
}

void SHUF__SIMD_NAME(shuf__records_widened)(const struct shuf__window_map *map,
                                            const uint64_t *restrict moves,
                                            const uint32_t *restrict in, uint64_t *restrict out,
                                            size_t count)
{
    const uint32_t gap_at = (uint32_t)map->gap_at, gap = (uint32_t)map->gap;
    const uint64_t multiplier = map->multiplier;
    const unsigned shift = map->shift;
    for (size_t i = 0; i < count; i++) {
        const uint32_t x = in[i] + (in[i] >= gap_at ? gap : 0);
        out[i] = x + moves[x * multiplier >> shift];
    }
}

void SHUF__SIMD_NAME(shuf__records_wide)(const struct shuf__window_map *map,
                                         const uint64_t *restrict moves, const uint64_t *in,
                                         uint64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t x = in[i] + (in[i] >= map->gap_at ? map->gap : 0);
        out[i] = x + moves[x / map->chunk];
    }
}

/* ---- Unequal chunks ---- */

/* A table of the window gives the last chunk that begins at the begin of the number's bucket or
 * before it. A binary search goes on from there; its number of steps is that of the fullest bucket.
 */

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
