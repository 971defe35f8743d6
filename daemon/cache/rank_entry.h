/* SPDX-License-Identifier: MIT
 *
 * Rank indexes (kernels/rank_index.h): with one, late slices and single places of philox24 and lcg
 * are found without an evaluation of everything before them. A rank index is an entry of the cache:
 * it is charged to its user in host memory, shared by jobs for the same permutation, and evicted
 * when it is the least recently used entry.
 */
#ifndef SHUFD_RANK_ENTRY_H
#define SHUFD_RANK_ENTRY_H

#include "cache.h"
#include "rank_index.h"

/* On the loop's thread, when a job starts: the user's rank index of the request's permutation, with
 * memory; it may be empty. One job at a time has it, since the engine runs one job at a time. NULL
 * if the budget has no room, as shuf__refuse_allocation() says, or the job's n is too large. */
struct shuf__cache_entry *shuf__rank_entry_acquire(struct shuf__cache *cache, uint32_t uid,
                                                   const struct shuf__request *request,
                                                   struct shuf__error *error);

/* On a lane's thread: the job's rank index; NULL when out of memory. */
struct shuf__rank_index *shuf__rank_entry_open(struct shuf__cache_entry *index,
                                               struct shuf__backend *backend,
                                               struct shuf__error *error);

/* On the loop's thread, when the job is over, successful or not. NULL is allowed. */
void shuf__rank_entry_release(struct shuf__cache_entry *index);

#endif
