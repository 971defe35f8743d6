/* SPDX-License-Identifier: MIT
 *
 * Random access to the algorithms with compaction. The position of a value depends on how many
 * values before it were kept. A rank index has this number for each tile of the domain, so a
 * computation that has one starts at the first tile that it needs. Computations fill the index as
 * they evaluate tiles.
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

/* Larger n have no index: it would have more than 32 MiB, and take minutes to fill. */
#define SHUF__RANK_INDEX_N_MAX (UINT64_C(1) << 36)

/* The index of one permutation. Tile t < known has the values number before[t] to before[t + 1] -
 * 1; before[known] is valid too. A new index is all zeros. */
struct shuf__rank_index {
    uint64_t known;
    uint64_t before[];
};

/* The rule for computations that are faster with a rank index on a backend. */
struct shuf__rank_index_limits {
    uint64_t min_skip; /* a computation must pass over at least this many values */
    uint64_t min_gap; /* it passes over values only between requested ones that are farther apart */
};

/* Bytes of the whole index. 0: the values need none for random access, or there is only one
 * tile. */
uint64_t shuf__rank_index_bytes(enum shuf_algorithm algorithm, uint64_t n);

/* Whether a computation of the request passes over enough values, before its first or between them.
 * False where limits is NULL. */
bool shuf__rank_index_helps(const struct shuf__rank_index_limits *limits,
                            const struct shuf__request *request);

/* The tile that has the value at that position, which is below before[known]. */
uint64_t shuf__rank_index_find(const struct shuf__rank_index *ranks, uint64_t position);

/* The number of bytes that have been written. */
uint64_t shuf__rank_index_written(const struct shuf__rank_index *ranks);

/* Tiles [begin, end). */
struct shuf__span {
    uint64_t begin, end;
};

/* For a device that evaluates many tiles at the same time. Moves *span, all zeros at first, to the
 * next tiles that the slice of p (one row) needs, at most `most`. False if it needs no more.
 * Unknown tiles come without gaps, and must be added before the next call. Known values at least
 * min_gap apart get separate spans. */
bool shuf__rank_index_next(const struct shuf__rank_index *ranks, const struct shuf__permutation *p,
                           uint64_t most, uint64_t min_gap, struct shuf__span *span);

/* starts[i] = before[span->begin + i], up to and including span->end. */
void shuf__rank_index_add(struct shuf__rank_index *ranks, const struct shuf__span *span,
                          const uint64_t *starts);

#ifdef __cplusplus
}
#endif

#endif
