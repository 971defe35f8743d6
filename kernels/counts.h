/* SPDX-License-Identifier: MIT
 *
 * Random access to the algorithms that leave values out. Where a value stands
 * depends on how many before it were kept, so the domain is cut into tiles, and what
 * a job learns of where their values begin serves the next: that one starts at the
 * tile that it wants.
 */
#ifndef SHUF__COUNTS_H
#define SHUF__COUNTS_H

#include "backend.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SHUF__COUNTS_TILE = 16384 }; /* inputs of the domain */

/* Above that a table would have more than 32 MiB, and filling it take minutes. */
#define SHUF__COUNTS_N_MAX (UINT64_C(1) << 36)

/* Of one permutation: its values number before[t], before[t] + 1, ... come from tile t, for
 * t < known; before[known] is known too. Zeros know nothing. */
struct shuf__counts {
    uint64_t known;
    uint64_t before[];
};

/* Bytes of the whole table. 0: values know their places without one, or there is but one tile. */
uint64_t shuf__counts_bytes(enum shuf_algorithm algorithm, uint64_t n);

/* Whether a job of the request passes over much, before its values or between them, for that
 * backend. */
bool shuf__counts_help(const struct shuf__backend *backend, const struct shuf__request *request);

/* The tile that has the value at that position, which is below before[known]. */
uint64_t shuf__counts_find(const struct shuf__counts *counts, uint64_t position);

/* How many have been written. */
uint64_t shuf__counts_written(const struct shuf__counts *counts);

/* Tiles [begin, end). */
struct shuf__span {
    uint64_t begin, end;
};

/* For who evaluates many tiles at once: goes on from *span, all zeros at first, to the next tiles
 * that a job with counts needs, at most `most` of them; false when it needs no more. What is
 * unknown is handed out without gaps and must be added before the next call. Values at least
 * `apart` from each other are fetched one by one, where what lies between is known. */
bool shuf__counts_next(const struct shuf__job *job, uint64_t most, uint64_t apart,
                       struct shuf__span *span);

/* starts[i] = before[span->begin + i], up to and including span->end. */
void shuf__counts_add(struct shuf__counts *counts, const struct shuf__span *span,
                      const uint64_t *starts);

#ifdef __cplusplus
}
#endif

#endif
