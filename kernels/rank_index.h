/* SPDX-License-Identifier: MIT
 *
 * A rank index: the number of values kept before each tile of the domain. It gives random access to
 * the algorithms with compaction. These leave values out, so the position of a value depends on the
 * number of values kept before it. With an index, a computation starts at the first tile that it
 * needs. Computations fill the index while they evaluate tiles.
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

/* A larger n has no index. It would take more than 32 MiB, and minutes to fill. */
#define SHUF__RANK_INDEX_N_MAX (UINT64_C(1) << 36)

/* The index of one permutation. before[t] is the number of values kept in the tiles before tile t.
 * It is valid for t = 0 to `known`. A new index is all zeros. */
struct shuf__rank_index {
    uint64_t known;
    uint64_t before[];
};

/* When a rank index makes a computation faster on a backend. The computation passes over values if
 * it evaluates them and does not return them. */
struct shuf__rank_index_limits {
    uint64_t min_skip; /* the computation must pass over at least so many values */
    uint64_t min_gap;  /* it can skip values only between requested ones that are farther apart */
};

/* Bytes of the whole index. The result is 0 if no index is needed: with random access, with n = 2^B
 * (no value is left out), and for a domain of one tile. */
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
 * first call gets a span of zeros. Returns false if the slice needs no more tiles.
 *
 * A span leaves out known tiles between two requested values that are at least min_gap apart. It
 * never leaves out unknown tiles. If a span has unknown tiles, the caller must add their counts by
 * shuf__rank_index_add() before the next call. This function is for a device that evaluates many
 * tiles at the same time. */
bool shuf__rank_index_next(const struct shuf__rank_index *ranks, const struct shuf__permutation *p,
                           uint64_t most, uint64_t min_gap, struct shuf__span *span);

/* starts[i] = before[span->begin + i], up to and including span->end. */
void shuf__rank_index_add(struct shuf__rank_index *ranks, const struct shuf__span *span,
                          const uint64_t *starts);

#ifdef __cplusplus
}
#endif

#endif
