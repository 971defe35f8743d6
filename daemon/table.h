/* SPDX-License-Identifier: MIT
 *
 * Rank indexes (kernels/rank_index.h), by which late slices and single places of
 * philox24 and lcg are found without passing over everything before them. A table is
 * kept as results are: charged to its user in host memory, shared by requests for the
 * same permutation, and given up when it is the coldest and its memory is needed.
 */
#ifndef SHUFD_TABLE_H
#define SHUFD_TABLE_H

#include "rank_index.h"
#include "results.h"

/* On the loop's thread, when the turn of a job has come: the user's table of the permutation,
 * with a cell; it may know nothing yet. One job at a time has it, as there is one engine. NULL
 * where the budget has no room, as shuf__cells_refuse() says, or the job's n is too large. */
struct shuf__result *shuf__table_take(struct shuf__results *results, uint32_t uid,
                                      const struct shuf__permutation *p, struct shuf__error *error);

/* On the engine's thread: the job's rank index; NULL when there was no memory. */
struct shuf__rank_index *shuf__table_open(struct shuf__result *table, struct shuf__backend *backend,
                                          struct shuf__error *error);

/* On the loop's thread, when the job is over, whatever became of it. NULL is allowed. */
void shuf__table_give_back(struct shuf__result *table);

#endif
