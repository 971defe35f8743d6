/* SPDX-License-Identifier: MIT
 *
 * See cache.h.
 */
#include "cache.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Idle results of one size that stay before the lru one's allocation serves the next request. Small
 * ones are cheap, and the same few blocks again and again are blocks that clients have mapped; of
 * the largest there is one, as fresh memory costs more than computing. */
enum { KEEP_MOST = 64 };
static const uint64_t keep_bytes = UINT64_C(128) << 20;

/* One user's idle results of one kind and size of allocation. */
struct shuf__size_class {
    uint32_t uid, kind;
    uint64_t size;
    unsigned count;
    struct shuf__idle lru;
    LIST_ENTRY(shuf__size_class) link;
};

static void on_trim(uv_timer_t *timer);

/* ---- the table ---- */

static int compare(const void *a, const void *b)
{
    const struct shuf__key *k = a, *l = b;
    if (k->uid != l->uid)
        return k->uid < l->uid ? -1 : 1;
    if (k->kind != l->kind)
        return k->kind < l->kind ? -1 : 1;
    if (k->role != l->role)
        return k->role < l->role ? -1 : 1;
    return shuf__request_compare(&k->request, &l->request);
}

struct shuf__cache_entry *shuf__cache_find(struct shuf__cache *results, const struct shuf__key *key)
{
    struct shuf__cache_entry *const *found = tfind(key, &results->table, compare);
    return found ? *found : NULL;
}

void shuf__cache_entry_hide(struct shuf__cache_entry *result)
{
    if (result->found)
        tdelete(result, &result->all->table, compare);
    result->found = false;
}

/* Without memory for the table's node it serves its own request and is found by no other. */
struct shuf__cache_entry *shuf__cache_add(struct shuf__cache *results, const struct shuf__key *key,
                                          uint64_t bytes)
{
    struct shuf__cache_entry *result = calloc(1, sizeof *result);
    if (!result)
        return NULL;
    result->all = results;
    result->key = *key;
    result->bytes = bytes;
    result->refs = 1;
    result->found = shuf__key_is_shared(key) && tsearch(result, &results->table, compare) != NULL;
    return result;
}

/* ---- idle results ---- */

static enum shuf__memory kind_of(const struct shuf__cache_entry *result)
{
    return result->key.kind;
}

static struct shuf__idle *idle_list(const struct shuf__cache_entry *result)
{
    return &result->all->idle[shuf__pool_of(kind_of(result))];
}

static struct shuf__size_class *find_size_class(const struct shuf__cache_entry *result,
                                                uint64_t size)
{
    struct shuf__size_class *size_class;
    LIST_FOREACH (size_class, &result->all->size_classes, link)
        if (size_class->uid == result->key.uid && size_class->kind == result->key.kind &&
            size_class->size == size)
            return size_class;
    return NULL;
}

static struct shuf__size_class *make_size_class(struct shuf__cache_entry *result)
{
    struct shuf__size_class *size_class = calloc(1, sizeof *size_class);
    if (!size_class)
        return NULL;
    size_class->uid = result->key.uid;
    size_class->kind = result->key.kind;
    size_class->size = result->allocation->bytes;
    TAILQ_INIT(&size_class->lru);
    LIST_INSERT_HEAD(&result->all->size_classes, size_class, link);
    return size_class;
}

/* What nobody can find is only memory for the next: it is the lru, and no younger than what was
 * before it. */
static void insert_idle(struct shuf__cache_entry *result, struct shuf__size_class *size_class)
{
    struct shuf__idle *list = idle_list(result);
    result->idle_since_ms = uv_now(result->all->trim.loop);
    if (result->found) {
        TAILQ_INSERT_TAIL(list, result, lru);
        TAILQ_INSERT_TAIL(&size_class->lru, result, in_size_class);
        return;
    }
    if (!TAILQ_EMPTY(list))
        result->idle_since_ms = TAILQ_FIRST(list)->idle_since_ms;
    TAILQ_INSERT_HEAD(list, result, lru);
    TAILQ_INSERT_HEAD(&size_class->lru, result, in_size_class);
}

static void become_idle(struct shuf__cache_entry *result, struct shuf__size_class *size_class)
{
    struct shuf__cache *results = result->all;
    result->size_class = size_class;
    size_class->count++;
    results->idle_bytes += size_class->size;
    insert_idle(result, size_class);
    if (!uv_is_active((uv_handle_t *)&results->trim))
        uv_timer_start(&results->trim, on_trim, results->keep_ms, 0);
}

static void end_idle(struct shuf__cache_entry *result)
{
    struct shuf__size_class *size_class = result->size_class;
    TAILQ_REMOVE(idle_list(result), result, lru);
    TAILQ_REMOVE(&size_class->lru, result, in_size_class);
    result->size_class = NULL;
    result->all->idle_bytes -= size_class->size;
    if (--size_class->count > 0)
        return;
    LIST_REMOVE(size_class, link);
    free(size_class);
}

/* Its allocation, where it has one, is the caller's. */
static void end_result(struct shuf__cache_entry *result)
{
    assert(result->refs == 0 && !result->work);
    if (result->size_class)
        end_idle(result);
    shuf__cache_entry_end_input(result);
    shuf__cache_entry_hide(result);
    free(result);
}

static void give_up(struct shuf__cache_entry *result)
{
    struct shuf__allocation *allocation = result->allocation;
    end_result(result);
    if (allocation)
        shuf__allocation_drop(allocation);
}

static void on_trim(uv_timer_t *timer)
{
    struct shuf__cache *results = timer->data;
    uint64_t now = uv_now(timer->loop), next = UINT64_MAX;
    for (int pool = 0; pool < SHUF__POOLS; pool++) {
        struct shuf__cache_entry *result;
        while ((result = TAILQ_FIRST(&results->idle[pool])) != NULL &&
               result->idle_since_ms + results->keep_ms <= now)
            give_up(result);
        if (result && result->idle_since_ms + results->keep_ms < next)
            next = result->idle_since_ms + results->keep_ms;
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, on_trim, next - now, 0);
}

/* ---- allocations ---- */

static bool is_full(const struct shuf__size_class *size_class)
{
    uint64_t keep = keep_bytes / size_class->size;
    return size_class->count > KEEP_MOST || size_class->count > (keep < 1 ? 1 : keep);
}

/* A block that was given to a process which cannot be told is not written to again: what is too
 * many of these goes, or there would be no end to them. */
static struct shuf__cache_entry *lru_in(struct shuf__size_class *size_class)
{
    struct shuf__cache_entry *next, *result = TAILQ_FIRST(&size_class->lru);
    for (; result && !shuf__allocation_is_rewritable(result->allocation); result = next) {
        next = TAILQ_NEXT(result, in_size_class);
        if (!is_full(size_class)) /* and so the size_class stays, too */
            continue;
        result->all->evicted += result->found;
        give_up(result);
    }
    return result;
}

static void take_over(struct shuf__cache_entry *result, struct shuf__cache_entry *old)
{
    result->all->evicted += old->found;
    result->allocation = old->allocation;
    end_result(old);
}

static bool reuse(struct shuf__cache_entry *result, uint64_t size, bool only_spare)
{
    struct shuf__size_class *size_class = find_size_class(result, size);
    struct shuf__cache_entry *old = size_class ? lru_in(size_class) : NULL;
    if (!old || (only_spare && old->found && !is_full(size_class)))
        return false;
    take_over(result, old);
    return true;
}

/* A buffer has memory of its own, from its client's first look at it to the last. */
bool shuf__cache_entry_reuse_allocation(struct shuf__cache_entry *result)
{
    return !shuf__key_is_buffer(&result->key) &&
           reuse(result,
                 shuf__allocations_size(result->all->allocations, kind_of(result), result->bytes),
                 true);
}

bool shuf__cache_entry_reuse_any_allocation(struct shuf__cache_entry *result)
{
    return !shuf__key_is_buffer(&result->key) &&
           reuse(result,
                 shuf__allocations_size(result->all->allocations, kind_of(result), result->bytes),
                 false);
}

/* What is given up for others: what somebody could find only where `all`. Those that somebody has
 * mapped would free nothing. */
static bool may_go(const struct shuf__cache_entry *result, bool all)
{
    return (all || !result->found) && shuf__allocation_is_unmapped(result->allocation);
}

/* Gives up idle results, lru first, until so much fits. */
static bool evict(struct shuf__cache *results, enum shuf__memory kind, uint64_t size, bool all)
{
    bool any = false;
    struct shuf__cache_entry *next, *result = TAILQ_FIRST(&results->idle[shuf__pool_of(kind)]);
    for (; result && !shuf__allocations_fit(results->allocations, kind, size); result = next) {
        next = TAILQ_NEXT(result, lru);
        if (!may_go(result, all))
            continue;
        results->evicted += result->found;
        give_up(result);
        any = true;
    }
    return any;
}

/* Whether that would be enough: nothing is given up in vain. */
static bool would_do(const struct shuf__cache *results, enum shuf__memory kind, uint64_t size,
                     bool all)
{
    enum shuf__pool pool = shuf__pool_of(kind);
    const struct shuf__budget *budget = &results->allocations->budgets[pool];
    uint64_t freed = 0;
    const struct shuf__cache_entry *result;
    if (size > budget->limit)
        return false; /* whatever is given up */
    TAILQ_FOREACH (result, &results->idle[pool], lru)
        if (budget->used - freed > budget->limit - size && may_go(result, all))
            freed += result->allocation->bytes;
    return budget->used - freed <= budget->limit - size;
}

static bool make_fit(struct shuf__cache *results, enum shuf__memory kind, uint64_t size, bool all)
{
    if (shuf__allocations_fit(results->allocations, kind, size))
        return true;
    shuf__allocations_sweep(results->allocations);
    if (!would_do(results, kind, size, all))
        return false;
    evict(results, kind, size, all);
    return shuf__allocations_fit(results->allocations, kind, size);
}

shuf_status shuf__cache_check_room(const struct shuf__cache *results, enum shuf__memory kind,
                                   uint64_t bytes, struct shuf__error *error)
{
    const uint64_t size = shuf__allocations_least_size(bytes);
    if (shuf__allocations_measure(results->allocations, kind, error))
        return error->status;
    if (shuf__allocations_fit(results->allocations, kind, size))
        return SHUF_OK;
    shuf__allocations_sweep(results->allocations);
    return would_do(results, kind, size, true)
               ? SHUF_OK
               : shuf__allocations_refuse(results->allocations, kind, size, error);
}

/* Rounded up, so that it serves for others; without that where so much is not to be had. */
static bool take_allocation(struct shuf__cache_entry *result, bool all, uint64_t *size)
{
    struct shuf__allocations *allocations = result->all->allocations;
    enum shuf__memory kind = kind_of(result);
    *size = shuf__allocations_size(allocations, kind, result->bytes);
    if (all && !shuf__allocations_fit(allocations, kind, *size) &&
        !shuf__key_is_buffer(&result->key) && reuse(result, *size, false))
        return true;
    if (make_fit(result->all, kind, *size, all))
        return true;
    *size = shuf__allocations_least_size(result->bytes);
    return make_fit(result->all, kind, *size, all);
}

static shuf_status make_allocation(struct shuf__cache_entry *result, uint64_t size,
                                   struct shuf__error *error)
{
    if (!result->allocation)
        result->allocation =
            shuf__allocation_make(result->all->allocations, result->key.uid, kind_of(result), size,
                                  shuf__key_is_buffer(&result->key));
    return result->allocation ? SHUF_OK
                              : shuf__fail(error, SHUF_NO_MEMORY, "result: out of memory");
}

shuf_status shuf__cache_entry_take_allocation(struct shuf__cache_entry *result,
                                              struct shuf__error *error)
{
    uint64_t size;
    struct shuf__allocations *allocations = result->all->allocations;
    if (shuf__cache_entry_reuse_allocation(result))
        return SHUF_OK;
    if (shuf__allocations_measure(allocations, kind_of(result), error))
        return error->status;
    if (!take_allocation(result, true, &size))
        return shuf__allocations_refuse(allocations, kind_of(result), size, error);
    return make_allocation(result, size, error);
}

bool shuf__cache_entry_wish_allocation(struct shuf__cache_entry *result)
{
    uint64_t size;
    struct shuf__error ignored;
    return shuf__cache_entry_reuse_allocation(result) ||
           (shuf__allocations_measure(result->all->allocations, kind_of(result), &ignored) ==
                SHUF_OK &&
            take_allocation(result, false, &size) &&
            make_allocation(result, size, &ignored) == SHUF_OK);
}

bool shuf__cache_entry_make_room(struct shuf__cache_entry *result)
{
    struct shuf__allocations *allocations = result->all->allocations;
    enum shuf__memory kind = kind_of(result);
    uint64_t size = result->allocation->bytes;
    struct shuf__budget *budget = &allocations->budgets[shuf__pool_of(kind)];
    shuf__allocation_drop(result->allocation);
    result->allocation = NULL;
    budget->limit = budget->used; /* it was less than thought: this much is there */
    return evict(result->all, kind, size, true);
}

/* ---- references ---- */

struct shuf__cache_entry *shuf__cache_entry_ref(struct shuf__cache_entry *result)
{
    if (result->size_class)
        end_idle(result);
    result->refs++;
    return result;
}

void shuf__cache_entry_end_input(struct shuf__cache_entry *result)
{
    struct shuf__cache_entry *input = result->input;
    result->input = NULL;
    if (input)
        shuf__cache_entry_unref(input);
}

/* What was never completed is neither a result nor worth its memory; a buffer's memory is nobody
 * else's. */
void shuf__cache_entry_unref(struct shuf__cache_entry *result)
{
    struct shuf__size_class *size_class = NULL;
    assert(result->refs > 0);
    if (--result->refs > 0)
        return;
    if (result->ready && !shuf__key_is_buffer(&result->key) && result->all->keep_ms > 0) {
        size_class = find_size_class(result, result->allocation->bytes);
        size_class = size_class ? size_class : make_size_class(result);
    }
    if (size_class)
        become_idle(result, size_class);
    else
        give_up(result);
}

/* ---- all of them ---- */

void shuf__cache_init(struct shuf__cache *results, uv_loop_t *loop)
{
    for (int pool = 0; pool < SHUF__POOLS; pool++)
        TAILQ_INIT(&results->idle[pool]);
    LIST_INIT(&results->size_classes);
    uv_timer_init(loop, &results->trim);
    results->trim.data = results;
}

void shuf__cache_clear(struct shuf__cache *results)
{
    struct shuf__cache_entry *result;
    for (int pool = 0; pool < SHUF__POOLS; pool++)
        while ((result = TAILQ_FIRST(&results->idle[pool])) != NULL)
            give_up(result);
    uv_timer_stop(&results->trim);
}
