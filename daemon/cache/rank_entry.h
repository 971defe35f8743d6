/* SPDX-License-Identifier: MIT
 *
 * Rank indexes (kernels/rank_index.h). With a rank index, a backend finds late slices and single
 * values of philox24 and lcg without evaluating all values before them. A rank index is an entry of
 * the cache. It is charged to its user in host memory, and jobs for the same permutation share it.
 * It is evicted when it is the least recently used entry, or unused for `cache_time`.
 */
#ifndef SHUFD_RANK_ENTRY_H
#define SHUFD_RANK_ENTRY_H

#include "cache.h"
#include "rank_index.h"

/* Call on the loop's thread when a job starts. Returns the user's rank index of the request's
 * permutation. The index has memory, but may have no counts yet. Only one job uses the index at a
 * time, because each engine has its own, and runs one job of a user at a time. Returns NULL if the
 * budget has no room, with the error of shuf__refuse_allocation(), or if n is too large. */
struct shuf__cache_entry *shuf__rank_entry_acquire(struct shuf__cache *cache,
                                                   struct shuf__engine *engine, uint32_t uid,
                                                   const struct shuf__request *request,
                                                   struct shuf__error *error);

/* Call on a lane's thread. Returns the job's rank index; NULL when out of memory. */
struct shuf__rank_index *shuf__rank_entry_open(struct shuf__cache_entry *index,
                                               struct shuf__backend *backend,
                                               struct shuf__error *error);

/* Call on the loop's thread when the job has ended or failed. `index` may be NULL. */
void shuf__rank_entry_release(struct shuf__cache_entry *index);

#endif
