/* SPDX-License-Identifier: MIT
 *
 * See rank_entry.h.
 */
#include "rank_entry.h"

#include "memory/refusal.h"

#include <inttypes.h>

static struct shuf__cache_key key_of(uint32_t uid, const struct shuf__request *request,
                                     bool on_host)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    return (struct shuf__cache_key){
        .request = {.kind = SHUF__LOOK_UP,
                    .key = request->key,
                    .look_up = {.permutation = {.n = p->n,
                                                .seed = p->seed,
                                                .epoch = p->epoch,
                                                .rows = 1,
                                                .count = p->n,
                                                .stride = 1,
                                                .algorithm = p->algorithm}}},
        .uid = uid,
        .memory = SHUF__MEMORY_MEMFD,
        .index_of_host = on_host,
    };
}

/* The message tells a client why even a request for a few positions needs a block. */
static shuf_status check_size(const struct shuf__cache *cache, uint32_t uid, uint64_t n,
                              uint64_t bytes, struct shuf__error *error)
{
    struct shuf__error why;
    const struct shuf__need need = {uid, SHUF__MEMORY_MEMFD, bytes};
    if (shuf__refusal_check_fit(cache->pool->allocations, &need, 0, &why))
        return shuf__fail(error, why.status, "n %" PRIu64 ": for its rank index, %s", n, why.text);
    return SHUF_OK;
}

struct shuf__cache_entry *shuf__rank_entry_acquire(struct shuf__cache *cache,
                                                   struct shuf__engine *engine, uint32_t uid,
                                                   const struct shuf__request *request,
                                                   struct shuf__error *error)
{
    const struct shuf__permutation *permutation = shuf__request_permutation(request);
    const struct shuf__cache_key key = key_of(uid, request, engine != cache->engine);
    const uint64_t bytes = shuf__rank_index_bytes(permutation->algorithm, permutation->n);
    struct shuf__cache_entry *index = shuf__cache_find(cache, &key);
    if (index)
        return shuf__cache_entry_ref(index);
    if (check_size(cache, uid, permutation->n, bytes, error))
        return NULL;
    if (!(index = shuf__cache_add(cache, &key, bytes))) {
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
        return NULL;
    }
    if (shuf__cache_entry_acquire(index, SHUF__ACQUIRE_REQUIRED, error))
        return index;
    shuf__cache_entry_unref(index);
    return NULL;
}

/* A reused block holds the values of another result, so a new rank index is cleared first. */
struct shuf__rank_index *shuf__rank_entry_open(struct shuf__cache_entry *index,
                                               struct shuf__backend *backend,
                                               struct shuf__error *error)
{
    struct shuf__block *block = &index->allocation->block;
    if (!block->memory &&
        backend->ops->alloc(backend, SHUF__MEMORY_MEMFD, index->allocation->bytes, block, error))
        return NULL;
    struct shuf__rank_index *ranks = block->memory;
    if (!index->ready)
        ranks->known = ranks->before[0] = 0;
    return ranks;
}

/* A cancelled job leaves a shorter rank index, but a valid one. */
void shuf__rank_entry_release(struct shuf__cache_entry *index)
{
    if (!index)
        return;
    const struct shuf__rank_index *ranks = index->allocation->block.memory;
    if (ranks && (index->ready || ranks->known > 0)) {
        index->ready = true;
        shuf__allocation_commit(index->allocation, shuf__rank_index_written(ranks));
    }
    shuf__cache_entry_unref(index);
}
