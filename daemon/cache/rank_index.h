/* SPDX-License-Identifier: MIT
 *
 * Tables of counts (kernels/counts.h), by which late slices and single places of
 * philox24 and lcg are found without passing over everything before them. A table is
 * kept as results are: charged to its user in host memory, shared by requests for the
 * same permutation, and given up when it is the lru and its memory is needed.
 */
#ifndef SHUFD_RANK_INDEX_H
#define SHUFD_RANK_INDEX_H

#include "cache.h"
#include "counts.h"

/* On the loop's thread, when the turn of a job has come: the user's table of the job's permutation,
 * with a allocation; it may know nothing yet. One job at a time has it, as there is one engine.
 * NULL where the budget has no room, as shuf__allocations_refuse() says, or the job's n is too
 * large. */
struct shuf__cache_entry *shuf__rank_index_acquire(struct shuf__cache *results, uint32_t uid,
                                                   const struct shuf__permutation *p,
                                                   struct shuf__error *error);

/* On the engine's thread: what is to be the job's counts; NULL when there was no memory. */
struct shuf__counts *shuf__rank_index_open(struct shuf__cache_entry *table,
                                           struct shuf__backend *backend,
                                           struct shuf__error *error);

/* On the loop's thread, when the job is over, whatever became of it. NULL is allowed. */
void shuf__rank_index_release(struct shuf__cache_entry *table);

#endif
