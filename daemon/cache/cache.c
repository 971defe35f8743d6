/* SPDX-License-Identifier: MIT
 *
 * See cache.h.
 */
#include "cache.h"

#include <assert.h>
#include <malloc.h>
#include <search.h>
#include <stdlib.h>

/* ---- the search tree ---- */

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

/* ---- engines ---- */

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

/* ---- memory ---- */

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

/* ---- references ---- */

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
