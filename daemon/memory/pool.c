/* SPDX-License-Identifier: MIT
 *
 * See pool.h.
 */
#include "pool.h"

#include <search.h>
#include <stdlib.h>

/* Most idle blocks of a side. A search for memory may ask the kernel about each of them. */
enum {
    IDLE_MOST = 2048,
    AT_ONCE =
        32, /* dropped blocks that are freed in one step of the loop; a sweep frees the others */
};

/* ---- Idle allocations ---- */

static struct shuf__idle_allocations *lru_of(struct shuf__pool *pool,
                                             const struct shuf__allocation *allocation)
{
    return &pool->lru[shuf__side_of(allocation->kind)];
}

static int compare_classes(const void *a, const void *b)
{
    const struct shuf__size_class *k = a, *l = b;
    if (k->uid != l->uid)
        return k->uid < l->uid ? -1 : 1;
    if (k->kind != l->kind)
        return k->kind < l->kind ? -1 : 1;
    return (k->size > l->size) - (k->size < l->size);
}

struct shuf__size_class *shuf__pool_find_class(const struct shuf__pool *pool, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size)
{
    const struct shuf__size_class key = {.uid = uid, .kind = kind, .size = size};
    struct shuf__size_class *const *found = tfind(&key, &pool->sizes, compare_classes);
    return found ? *found : NULL;
}

static struct shuf__size_class *make_size_class(struct shuf__pool *pool,
                                                const struct shuf__allocation *allocation)
{
    struct shuf__size_class *class = calloc(1, sizeof *class);
    if (!class)
        return NULL;
    class->uid = allocation->uid;
    class->kind = allocation->kind;
    class->size = allocation->bytes;
    TAILQ_INIT(&class->idle);
    if (tsearch(class, &pool->sizes, compare_classes))
        return class;
    free(class);
    return NULL;
}

static bool is_warm_sized(const struct shuf__pool *pool, const struct shuf__allocation *allocation)
{
    return allocation->bytes ==
           pool->allocations->budgets[shuf__side_of(allocation->kind)].warm_size;
}

/* A spare allocation goes to the front of the LRU list, so it is evicted first. It gets the age of
 * the next allocation, because the list must stay sorted by age. */
static void insert_idle(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    struct shuf__idle_allocations *lru = lru_of(pool, allocation);
    allocation->idle_since_ms = uv_now(pool->trim.loop);
    if (allocation->contents) {
        TAILQ_INSERT_TAIL(lru, allocation, in_lru);
        TAILQ_INSERT_TAIL(&allocation->size_class->idle, allocation, in_size_class);
        return;
    }
    if (!TAILQ_EMPTY(lru))
        allocation->idle_since_ms = TAILQ_FIRST(lru)->idle_since_ms;
    TAILQ_INSERT_HEAD(lru, allocation, in_lru);
    TAILQ_INSERT_HEAD(&allocation->size_class->idle, allocation, in_size_class);
}

static void count_idle(struct shuf__pool *pool, const struct shuf__allocation *allocation)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    pool->idle_bytes[side] += allocation->bytes;
    pool->idle_count[side]++;
    pool->warm_sized[side] += allocation->is_warm_sized;
    if (allocation->account)
        allocation->account->idle[side] += allocation->bytes;
}

static void uncount_idle(struct shuf__pool *pool, const struct shuf__allocation *allocation)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    pool->idle_bytes[side] -= allocation->bytes;
    pool->idle_count[side]--;
    pool->warm_sized[side] -= allocation->is_warm_sized;
    if (allocation->account)
        allocation->account->idle[side] -= allocation->bytes;
}

void shuf__pool_remove(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    struct shuf__size_class *class = allocation->size_class;
    TAILQ_REMOVE(lru_of(pool, allocation), allocation, in_lru);
    TAILQ_REMOVE(&class->idle, allocation, in_size_class);
    allocation->size_class = NULL;
    allocation->contents = NULL;
    uncount_idle(pool, allocation);
    if (--class->count > 0)
        return;
    tdelete(class, &pool->sizes, compare_classes);
    free(class);
}

void shuf__pool_end_contents(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    void *contents = allocation->contents;
    shuf__pool_remove(pool, allocation);
    if (contents)
        pool->on_evict(contents);
}

static void drop_idle(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    shuf__pool_end_contents(pool, allocation);
    shuf__allocation_drop(allocation);
}

static void on_trim(uv_timer_t *timer)
{
    struct shuf__pool *pool = timer->data;
    uint64_t now = uv_now(timer->loop), next = UINT64_MAX;
    for (int side = 0; side < SHUF__SIDES; side++) {
        struct shuf__allocation *allocation;
        while ((allocation = TAILQ_FIRST(&pool->lru[side])) != NULL &&
               allocation->idle_since_ms + pool->keep_ms <= now)
            drop_idle(pool, allocation);
        if (allocation && allocation->idle_since_ms + pool->keep_ms < next)
            next = allocation->idle_since_ms + pool->keep_ms;
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, on_trim, next - now, 0);
}

void shuf__pool_evict(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    pool->evicted += allocation->contents != NULL;
    drop_idle(pool, allocation);
}

/* One allocation of the warm block's size does not count against the limit of idle bytes. Returns
 * whether the side has such an allocation. */
static bool keeps_one(const struct shuf__pool *pool, enum shuf__side side)
{
    return pool->warm[side] || pool->warm_sized[side] > 0;
}

static uint64_t limited_bytes(const struct shuf__pool *pool, enum shuf__side side)
{
    const uint64_t besides = pool->warm[side]        ? pool->warm[side]->bytes
                             : keeps_one(pool, side) ? pool->allocations->budgets[side].warm_size
                                                     : 0;
    return pool->idle_bytes[side] > besides ? pool->idle_bytes[side] - besides : 0;
}

/* Whether the limit of idle bytes does not hold for the allocation. */
static bool is_exempt(const struct shuf__pool *pool, const struct shuf__allocation *allocation)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    return allocation->is_warm_sized && !pool->warm[side] && pool->warm_sized[side] == 1;
}

static struct shuf__allocation *first_limited(struct shuf__pool *pool, enum shuf__side side)
{
    struct shuf__allocation *first = TAILQ_FIRST(&pool->lru[side]),
                            *next = TAILQ_NEXT(first, in_lru);
    return is_exempt(pool, first) && next ? next : first;
}

bool shuf__pool_would_drop(const struct shuf__pool *pool, const struct shuf__allocation *allocation,
                           uint64_t bytes)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    const uint64_t limit = pool->allocations->budgets[side].idle_limit;
    uint64_t idle = limited_bytes(pool, side) + bytes;
    const struct shuf__allocation *next;
    TAILQ_FOREACH (next, &pool->lru[side], in_lru) {
        if (idle <= limit || (next == allocation && is_exempt(pool, next)))
            return false;
        if (next == allocation)
            return true;
        idle -= is_exempt(pool, next) ? 0 : next->bytes;
    }
    return false;
}

void shuf__pool_hold_to_limit(struct shuf__pool *pool, enum shuf__side side)
{
    while (pool->idle_count[side] > IDLE_MOST ||
           limited_bytes(pool, side) > pool->allocations->budgets[side].idle_limit)
        shuf__pool_evict(pool, first_limited(pool, side));
}

bool shuf__pool_keep(struct shuf__pool *pool, struct shuf__allocation *allocation, void *contents)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    if (pool->keep_ms == 0 || (allocation->bytes > pool->allocations->budgets[side].idle_limit &&
                               (!is_warm_sized(pool, allocation) || keeps_one(pool, side))))
        return false;
    struct shuf__size_class *class =
        shuf__pool_find_class(pool, allocation->uid, allocation->kind, allocation->bytes);
    if (!class && !(class = make_size_class(pool, allocation)))
        return false;
    allocation->size_class = class;
    allocation->contents = contents;
    allocation->found = SHUF__FOUND_NOTHING;
    class->count++;
    allocation->is_warm_sized = is_warm_sized(pool, allocation);
    count_idle(pool, allocation);
    insert_idle(pool, allocation);
    if (!uv_is_active((uv_handle_t *)&pool->trim))
        uv_timer_start(&pool->trim, on_trim, pool->keep_ms, 0);
    shuf__pool_hold_to_limit(pool, side);
    if (pool->on_idle)
        pool->on_idle(pool->idle_context, side);
    return true;
}

void shuf__pool_set_keep(struct shuf__pool *pool, uint64_t keep_ms)
{
    pool->keep_ms = keep_ms;
    if (uv_is_active((uv_handle_t *)&pool->trim))
        on_trim(&pool->trim); /* starts the timer for the new time */
}

/* ---- Warm blocks ---- */

void shuf__pool_add_warm(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    pool->warm[side] = allocation;
    pool->idle_bytes[side] += allocation->bytes;
    if (pool->on_idle)
        pool->on_idle(pool->idle_context, side);
}

struct shuf__allocation *shuf__pool_take_warm(struct shuf__pool *pool, enum shuf__side side)
{
    struct shuf__allocation *allocation = pool->warm[side];
    pool->warm[side] = NULL;
    pool->idle_bytes[side] -= allocation->bytes;
    return allocation;
}

bool shuf__pool_drop_warm(struct shuf__pool *pool, enum shuf__side side)
{
    if (!pool->warm[side])
        return false;
    shuf__allocation_drop(shuf__pool_take_warm(pool, side));
    return true;
}

/* ---- Giving back ---- */

/* A worker thread frees host memory, because freeing gigabytes takes long, and urgent jobs would
 * wait. */
static void count_and_drop(struct shuf__pool *pool, struct shuf__allocation *allocation,
                           struct shuf__dropped *dropped)
{
    const bool unmapped = shuf__allocation_is_unmapped(allocation);
    *(unmapped ? &dropped->bytes[shuf__side_of(allocation->kind)] : &dropped->mapped) +=
        allocation->bytes;
    dropped->results += allocation->contents != NULL;
    shuf__pool_end_contents(pool, allocation);
    if (!unmapped) {
        shuf__allocation_drop_later(allocation);
    } else if (dropped->unmapped++ >= AT_ONCE) {
        shuf__allocation_drop_later(allocation);
        shuf__allocation_free_soon(allocation);
    } else if (shuf__memory_is_host(allocation->kind)) {
        shuf__allocation_drop_on_worker(allocation);
    } else {
        shuf__allocation_drop(allocation);
    }
}

/* Drops the warm block of the side, and returns its bytes. */
static uint64_t count_and_drop_warm(struct shuf__pool *pool, enum shuf__side side,
                                    struct shuf__dropped *dropped)
{
    if (!pool->warm[side])
        return 0;
    struct shuf__allocation *allocation = shuf__pool_take_warm(pool, side);
    const uint64_t bytes = allocation->bytes;
    dropped->bytes[side] += bytes;
    if (side == SHUF__SIDE_HOST)
        shuf__allocation_drop_on_worker(allocation);
    else
        shuf__allocation_drop(allocation);
    return bytes;
}

struct shuf__dropped shuf__pool_drop(struct shuf__pool *pool, bool all, uint32_t uid)
{
    struct shuf__dropped dropped = {0};
    for (int side = 0; side < SHUF__SIDES; side++) {
        if (all)
            count_and_drop_warm(pool, (enum shuf__side)side, &dropped);
        struct shuf__allocation *next, *allocation = TAILQ_FIRST(&pool->lru[side]);
        for (; allocation; allocation = next) {
            next = TAILQ_NEXT(allocation, in_lru);
            if (all || allocation->uid == uid)
                count_and_drop(pool, allocation, &dropped);
        }
    }
    pool->allocations->shortages += dropped.mapped > 0;
    return dropped;
}

void shuf__pool_shrink(struct shuf__pool *pool, enum shuf__side side, uint64_t bytes,
                       struct shuf__dropped *dropped)
{
    struct shuf__allocation *next, *allocation = TAILQ_FIRST(&pool->lru[side]);
    uint64_t freed = count_and_drop_warm(pool, side, dropped);
    for (; allocation && freed < bytes; allocation = next) {
        next = TAILQ_NEXT(allocation, in_lru);
        if (!shuf__allocation_is_unmapped(allocation))
            continue;
        freed += allocation->committed;
        pool->evicted += allocation->contents != NULL;
        count_and_drop(pool, allocation, dropped);
    }
    pool->allocations->shortages += freed < bytes;
}

/* ---- All of them ---- */

void shuf__pool_init(struct shuf__pool *pool, uv_loop_t *loop)
{
    for (int side = 0; side < SHUF__SIDES; side++)
        TAILQ_INIT(&pool->lru[side]);
    uv_timer_init(loop, &pool->trim);
    pool->trim.data = pool;
}

void shuf__pool_clear(struct shuf__pool *pool)
{
    struct shuf__allocation *allocation;
    for (int side = 0; side < SHUF__SIDES; side++) {
        shuf__pool_drop_warm(pool, (enum shuf__side)side);
        while ((allocation = TAILQ_FIRST(&pool->lru[side])) != NULL)
            drop_idle(pool, allocation);
    }
    uv_timer_stop(&pool->trim);
}
