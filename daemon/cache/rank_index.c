/* SPDX-License-Identifier: MIT
 *
 * See table.h.
 */
#include "rank_index.h"

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
        .role = SHUF__RANK_INDEX,
    };
}

/* In words that tell whoever asked for a few places why that takes a block. */
static shuf_status check_size(struct shuf__cache *results, uint64_t n, uint64_t bytes,
                              struct shuf__error *error)
{
    struct shuf__allocations *allocations = results->allocations;
    if (shuf__allocations_measure(allocations, SHUF__MEMORY_MEMFD, error))
        return error->status;
    const uint64_t size = shuf__allocations_size(allocations, SHUF__MEMORY_MEMFD, bytes);
    const uint64_t limit = allocations->budgets[SHUF__POOL_HOST].limit;
    if (size <= limit)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "n %" PRIu64 ": its counts take a block of %" PRIu64
                      " bytes, expected at most %" PRIu64 " (host_memory)",
                      n, size, limit);
}

struct shuf__cache_entry *shuf__rank_index_acquire(struct shuf__cache *results, uint32_t uid,
                                                   const struct shuf__permutation *p,
                                                   struct shuf__error *error)
{
    const struct shuf__key key = key_of(uid, p);
    const uint64_t bytes = shuf__counts_bytes(p->algorithm, p->n);
    struct shuf__cache_entry *table = shuf__cache_find(results, &key);
    if (table)
        return shuf__cache_entry_ref(table);
    if (check_size(results, p->n, bytes, error))
        return NULL;
    if (!(table = shuf__cache_add(results, &key, bytes))) {
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
        return NULL;
    }
    if (shuf__cache_entry_take_allocation(table, error) == SHUF_OK)
        return table;
    shuf__cache_entry_unref(table);
    return NULL;
}

/* A allocation may have served another result before. */
struct shuf__counts *shuf__rank_index_open(struct shuf__cache_entry *table,
                                           struct shuf__backend *backend, struct shuf__error *error)
{
    struct shuf__block *block = &table->allocation->block;
    if (!block->memory &&
        backend->ops->alloc(backend, SHUF__MEMORY_MEMFD, table->allocation->bytes, block, error))
        return NULL;
    struct shuf__counts *counts = block->memory;
    if (!table->ready)
        counts->known = counts->before[0] = 0;
    return counts;
}

/* What a cancelled job had counted is as right as the rest. */
void shuf__rank_index_release(struct shuf__cache_entry *table)
{
    if (!table)
        return;
    const struct shuf__counts *counts = table->allocation->block.memory;
    if (counts && (table->ready || counts->known > 0)) {
        table->ready = true;
        shuf__allocation_commit(table->allocation, shuf__counts_written(counts));
    }
    shuf__cache_entry_unref(table);
}
