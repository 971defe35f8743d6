/* SPDX-License-Identifier: MIT
 *
 * Random access to the algorithms with compaction. Compaction leaves values out, so the position of
 * a value depends on the number of values kept before it. A rank index has this number for each
 * tile of the domain. With an index, a computation starts at the first tile that it needs.
 * Computations fill the index while they evaluate tiles.
 */
#ifndef SHUF__RANK_INDEX_H
#define SHUF__RANK_INDEX_H

#include "request.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUF__RANK_INDEX_TILE = 16384 }; /* inputs of the domain */

/* A larger n has no index, because the index would have more than 32 MiB and take minutes to fill.
 */
#define SHUF__RANK_INDEX_N_MAX (UINT64_C(1) << 36)

/* The index of one permutation. before[t] is the number of values kept in the tiles before tile t.
 * It is valid for t = 0 to `known`. A new index is all zeros. */
struct shuf__rank_index {
    uint64_t known;
    uint64_t before[];
};

/* Says when a computation on a backend is faster with a rank index. A computation passes over the
 * values that it evaluates but does not return. */
struct shuf__rank_index_limits {
    uint64_t min_skip; /* the computation must pass over at least so many values */
    uint64_t min_gap;  /* values between requested ones count only if these are farther apart */
};

/* Bytes of the whole index. 0 if no index is needed: the algorithm has random access without one,
 * or n is a power of two and no value is left out, or the domain is only one tile. */
uint64_t shuf__rank_index_bytes(enum shuf_algorithm algorithm, uint64_t n);

/* Whether a computation of the request passes over enough values, before its first value or between
 * its values. False if `limits` is NULL. */
bool shuf__rank_index_helps(const struct shuf__rank_index_limits *limits,
                            const struct shuf__request *request);

/* The tile of the value at that position. The position must be below before[known]. */
uint64_t shuf__rank_index_find(const struct shuf__rank_index *ranks, uint64_t position);

/* The number of bytes of the index that have been written. */
uint64_t shuf__rank_index_written(const struct shuf__rank_index *ranks);

/* The tiles from `begin` to `end` - 1. */
struct shuf__span {
    uint64_t begin, end;
};

/* Moves *span to the next tiles that the slice of p (one row) needs, at most `most` of them. The
 * first call gets a span of zeros. Returns false if the slice needs no more tiles. A span can leave
 * out known tiles between two requested values that are at least min_gap apart. It leaves out no
 * unknown tiles; the caller must add their counts before the next call. This is for a device that
 * evaluates many tiles at the same time. */
bool shuf__rank_index_next(const struct shuf__rank_index *ranks, const struct shuf__permutation *p,
                           uint64_t most, uint64_t min_gap, struct shuf__span *span);

/* starts[i] = before[span->begin + i], up to and including span->end. */
void shuf__rank_index_add(struct shuf__rank_index *ranks, const struct shuf__span *span,
                          const uint64_t *starts);

#ifdef __cplusplus
}
#endif

#endif
