/* SPDX-License-Identifier: MIT
 *
 * See cache.h.
 */
#include "cache.h"

#include "memory/room.h"

#include <assert.h>
#include <inttypes.h>
#include <malloc.h>
#include <search.h>
#include <stdlib.h>

/* ---- The search tree ---- */

static int compare_keys(const void *a, const void *b)
{
    const struct shuf__cache_key *k = a, *l = b;
    if (k->uid != l->uid)
        return k->uid < l->uid ? -1 : 1;
    if (k->memory != l->memory)
        return k->memory < l->memory ? -1 : 1;
    if (k->index_of_host != l->index_of_host)
        return k->index_of_host ? -1 : 1;
    return shuf__request_compare(&k->request, &l->request);
}

struct shuf__cache_entry *shuf__cache_find(struct shuf__cache *cache,
                                           const struct shuf__cache_key *key)
{
    struct shuf__cache_entry *const *found = tfind(key, &cache->tree, compare_keys);
    return found ? *found : NULL;
}

void shuf__cache_entry_hide(struct shuf__cache_entry *entry)
{
    if (entry->findable)
        tdelete(entry, &entry->cache->tree, compare_keys);
    entry->findable = false;
}

/* If there is no memory for the tree's node, no other request finds the entry. */
struct shuf__cache_entry *shuf__cache_add(struct shuf__cache *cache,
                                          const struct shuf__cache_key *key, uint64_t bytes)
{
    struct shuf__cache_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->cache = cache;
    entry->engine = cache->engine;
    entry->key = *key;
    if (!shuf__request_own(&entry->key.request)) {
        free(entry);
        return NULL;
    }
    entry->bytes = bytes;
    entry->refs = 1;
    entry->findable =
        shuf__cache_key_is_shared(key) && tsearch(entry, &cache->tree, compare_keys) != NULL;
    return entry;
}

/* Frees the entry without its allocation, which then belongs to the caller. */
static void free_entry(struct shuf__cache_entry *entry)
{
    assert(entry->refs == 0 && !entry->job);
    shuf__cache_entry_end_input(entry);
    shuf__cache_entry_hide(entry);
    shuf__request_disown(&entry->key.request);
    free(entry);
}

/* ---- Engines ---- */

struct shuf__engine *shuf__cache_entry_engine(const struct shuf__cache_entry *entry)
{
    return entry->ready && shuf__memory_is_host(entry->key.memory)
               ? shuf__engines_host(entry->cache->engine)
               : entry->engine;
}

void shuf__cache_count_computed(struct shuf__cache *cache, struct shuf__engine *engine)
{
    cache->computed++;
    cache->computed_on_host += shuf__memory_is_host(shuf__engine_backend(engine)->ops->own);
}

/* ---- Memory ---- */

struct shuf__memory_request shuf__cache_entry_memory_request(const struct shuf__cache_entry *entry)
{
    return (struct shuf__memory_request){
        .uid = entry->key.uid,
        .kind = entry->key.memory,
        .bytes = entry->bytes,
        .buffer = shuf__cache_key_is_buffer(&entry->key),
    };
}

bool shuf__cache_entry_acquire(struct shuf__cache_entry *entry, enum shuf__acquire_policy policy,
                               struct shuf__error *error)
{
    const struct shuf__memory_request request = shuf__cache_entry_memory_request(entry);
    assert(!entry->allocation);
    entry->allocation = shuf__pool_acquire(entry->cache->pool, &request, policy, error);
    return entry->allocation != NULL;
}

/* ---- References ---- */

struct shuf__cache_entry *shuf__cache_entry_ref(struct shuf__cache_entry *entry)
{
    if (entry->refs++ == 0)
        shuf__pool_remove(entry->cache->pool, entry->allocation);
    return entry;
}

void shuf__cache_entry_end_input(struct shuf__cache_entry *entry)
{
    struct shuf__cache_entry *input = entry->input;
    entry->input = NULL;
    if (input)
        shuf__cache_entry_unref(input);
}

/* The pool keeps only blocks with a computed result. It never keeps the block of a buffer, because
 * the client may still write to it. */
void shuf__cache_entry_unref(struct shuf__cache_entry *entry)
{
    assert(entry->refs > 0);
    if (--entry->refs > 0)
        return;
    struct shuf__allocation *allocation = entry->allocation;
    void *contents = entry->findable ? entry : NULL;
    const bool kept = entry->ready && !shuf__cache_key_is_buffer(&entry->key) &&
                      shuf__pool_keep(entry->cache->pool, allocation, contents);
    if (kept && contents)
        return;
    free_entry(entry);
    if (allocation && !kept)
        shuf__allocation_drop(allocation);
}

/* The pool reuses or frees the memory of an idle entry. libc itself gives only the end of the heap
 * back to the system. */
static void on_evict(void *contents)
{
    enum { MANY = 2048 };
    struct shuf__cache *cache = ((struct shuf__cache_entry *)contents)->cache;
    free_entry(contents);
    if (++cache->evicted % MANY == 0)
        malloc_trim(0);
}

void shuf__cache_init(struct shuf__cache *cache, struct shuf__pool *pool,
                      struct shuf__keyring *keyring)
{
    cache->keyring = keyring;
    cache->pool = pool;
    pool->on_evict = on_evict;
}

/* ---- Rank indexes ---- */

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

/* A reused block holds the values of another result. It is cleared here and not by the job that
 * fills it, because a job may end before it does so. New memory is all zeros. */
static void clear_reused(const struct shuf__cache_entry *index)
{
    struct shuf__rank_index *ranks = index->allocation->block.memory;
    if (ranks)
        ranks->known = ranks->before[0] = 0;
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
    if (shuf__cache_entry_acquire(index, SHUF__ACQUIRE_REQUIRED, error)) {
        clear_reused(index);
        return index;
    }
    shuf__cache_entry_unref(index);
    return NULL;
}

struct shuf__rank_index *shuf__rank_entry_open(struct shuf__cache_entry *index,
                                               struct shuf__backend *backend,
                                               struct shuf__error *error)
{
    struct shuf__block *block = &index->allocation->block;
    if (!block->memory &&
        backend->ops->alloc(backend, SHUF__MEMORY_MEMFD, index->allocation->bytes, block, error))
        return NULL;
    return block->memory;
}

/* A cancelled job leaves a shorter rank index, but a valid one. The last job that holds the index
 * marks it as ready, because another one may still fill it. */
void shuf__rank_entry_release(struct shuf__cache_entry *index)
{
    if (!index)
        return;
    const struct shuf__rank_index *ranks = index->allocation->block.memory;
    if (ranks && index->refs == 1 && (index->ready || ranks->known > 0)) {
        index->ready = true;
        shuf__allocation_commit(index->allocation, shuf__rank_index_written(ranks));
    }
    shuf__cache_entry_unref(index);
}
