/* SPDX-License-Identifier: MIT
 *
 * See table.h.
 */
#include "table.h"

#include <inttypes.h>

static struct shuf__key key_of(uint32_t uid, const struct shuf__permutation *p)
{
    return (struct shuf__key){
        .request = {.kind = SHUF__LOOK_UP,
                    .look_up = {.permutation = {.n = p->n,
                                                .seed = p->seed,
                                                .epoch = p->epoch,
                                                .rows = 1,
                                                .count = p->n,
                                                .stride = 1,
                                                .algorithm = p->algorithm}}},
        .uid = uid,
        .kind = SHUF__MEMORY_MEMFD,
        .role = SHUF__TABLE,
    };
}

/* In words that tell whoever asked for a few places why that takes a block. */
static shuf_status check_size(struct shuf__results *results, uint64_t n, uint64_t bytes,
                              struct shuf__error *error)
{
    struct shuf__cells *cells = results->cells;
    if (shuf__cells_measure(cells, SHUF__MEMORY_MEMFD, error))
        return error->status;
    const uint64_t size = shuf__cells_size(cells, SHUF__MEMORY_MEMFD, bytes);
    const uint64_t limit = cells->budgets[SHUF__POOL_HOST].limit;
    if (size <= limit)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "n %" PRIu64 ": its counts take a block of %" PRIu64
                      " bytes, expected at most %" PRIu64 " (host_memory)",
                      n, size, limit);
}

struct shuf__result *shuf__table_take(struct shuf__results *results, uint32_t uid,
                                      const struct shuf__permutation *p, struct shuf__error *error)
{
    const struct shuf__key key = key_of(uid, p);
    const uint64_t bytes = shuf__rank_index_bytes(p->algorithm, p->n);
    struct shuf__result *table = shuf__results_find(results, &key);
    if (table)
        return shuf__result_ref(table);
    if (check_size(results, p->n, bytes, error))
        return NULL;
    if (!(table = shuf__results_make(results, &key, bytes))) {
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
        return NULL;
    }
    if (shuf__result_take_cell(table, error) == SHUF_OK)
        return table;
    shuf__result_unref(table);
    return NULL;
}

/* A cell may have served another result before. */
struct shuf__rank_index *shuf__table_open(struct shuf__result *table, struct shuf__backend *backend,
                                          struct shuf__error *error)
{
    struct shuf__block *block = &table->cell->block;
    if (!block->memory &&
        backend->ops->alloc(backend, SHUF__MEMORY_MEMFD, table->cell->bytes, block, error))
        return NULL;
    struct shuf__rank_index *ranks = block->memory;
    if (!table->ready)
        ranks->known = ranks->before[0] = 0;
    return ranks;
}

/* What a cancelled job had counted is as right as the rest. */
void shuf__table_give_back(struct shuf__result *table)
{
    if (!table)
        return;
    const struct shuf__rank_index *ranks = table->cell->block.memory;
    if (ranks && (table->ready || ranks->known > 0)) {
        table->ready = true;
        shuf__cell_back(table->cell, shuf__rank_index_written(ranks));
    }
    shuf__result_unref(table);
}
