/* SPDX-License-Identifier: MIT
 *
 * See pool.h.
 */
#include "pool.h"

#include <stdlib.h>

/* Idle allocations of one size class that stay before the least recently used one is reused. Small
 * results are cheap to compute, and clients have few reused blocks mapped already. Of the largest
 * size one stays, since fresh memory costs more than computing. */
enum { KEEP_MOST = 64 };
static const uint64_t keep_bytes = UINT64_C(128) << 20;

struct shuf__size_class {
    uint32_t uid, kind;
    uint64_t size;
    unsigned count;
    struct shuf__idle_allocations free_list; /* least recently used first */
    LIST_ENTRY(shuf__size_class) link;
};

/* ---- idle allocations ---- */

static struct shuf__idle_allocations *lru_of(struct shuf__pool *pool,
                                             const struct shuf__allocation *allocation)
{
    return &pool->lru[shuf__side_of(allocation->kind)];
}

static struct shuf__size_class *find_size_class(const struct shuf__pool *pool, uint32_t uid,
                                                enum shuf__memory kind, uint64_t size)
{
    struct shuf__size_class *class;
    LIST_FOREACH (class, &pool->sizes, link)
        if (class->uid == uid && class->kind == kind && class->size == size)
            return class;
    return NULL;
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
    TAILQ_INIT(&class->free_list);
    LIST_INSERT_HEAD(&pool->sizes, class, link);
    return class;
}

/* A spare allocation becomes the least recently used one, and as old as the one before it. */
static void insert_idle(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    struct shuf__idle_allocations *lru = lru_of(pool, allocation);
    allocation->idle_since_ms = uv_now(pool->trim.loop);
    if (allocation->contents) {
        TAILQ_INSERT_TAIL(lru, allocation, in_lru);
        TAILQ_INSERT_TAIL(&allocation->size_class->free_list, allocation, in_size_class);
        return;
    }
    if (!TAILQ_EMPTY(lru))
        allocation->idle_since_ms = TAILQ_FIRST(lru)->idle_since_ms;
    TAILQ_INSERT_HEAD(lru, allocation, in_lru);
    TAILQ_INSERT_HEAD(&allocation->size_class->free_list, allocation, in_size_class);
}

void shuf__pool_take_back(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    struct shuf__size_class *class = allocation->size_class;
    TAILQ_REMOVE(lru_of(pool, allocation), allocation, in_lru);
    TAILQ_REMOVE(&class->free_list, allocation, in_size_class);
    allocation->size_class = NULL;
    allocation->contents = NULL;
    pool->idle_bytes[shuf__side_of(allocation->kind)] -= class->size;
    if (--class->count > 0)
        return;
    LIST_REMOVE(class, link);
    free(class);
}

/* The allocation is then the caller's. */
static void end_contents(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    void *contents = allocation->contents;
    shuf__pool_take_back(pool, allocation);
    if (contents)
        pool->on_evict(contents);
}

static void drop_idle(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    end_contents(pool, allocation);
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

static void evict_idle(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    pool->evicted += allocation->contents != NULL;
    drop_idle(pool, allocation);
}

static void hold_to_limit(struct shuf__pool *pool, enum shuf__side side)
{
    while (pool->idle_bytes[side] > pool->allocations->budgets[side].idle_limit)
        evict_idle(pool, TAILQ_FIRST(&pool->lru[side]));
}

bool shuf__pool_keep(struct shuf__pool *pool, struct shuf__allocation *allocation, void *contents)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    if (pool->keep_ms == 0 || allocation->bytes > pool->allocations->budgets[side].idle_limit)
        return false;
    struct shuf__size_class *class =
        find_size_class(pool, allocation->uid, allocation->kind, allocation->bytes);
    if (!class && !(class = make_size_class(pool, allocation)))
        return false;
    allocation->size_class = class;
    allocation->contents = contents;
    class->count++;
    pool->idle_bytes[side] += class->size;
    insert_idle(pool, allocation);
    if (!uv_is_active((uv_handle_t *)&pool->trim))
        uv_timer_start(&pool->trim, on_trim, pool->keep_ms, 0);
    hold_to_limit(pool, side);
    if (pool->on_idle)
        pool->on_idle(pool->idle_context, side);
    return true;
}

void shuf__pool_set_keep(struct shuf__pool *pool, uint64_t keep_ms)
{
    pool->keep_ms = keep_ms;
    if (uv_is_active((uv_handle_t *)&pool->trim))
        on_trim(&pool->trim); /* its time has changed */
}

/* ---- reuse ---- */

static bool is_full(const struct shuf__size_class *class)
{
    uint64_t keep = keep_bytes / class->size;
    return class->count > KEEP_MOST || class->count > (keep < 1 ? 1 : keep);
}

/* The least recently used one whose block may be rewritten. The others are dropped while the class
 * is full, or their number would grow without limit. A full class has another allocation left. */
static struct shuf__allocation *find_rewritable(struct shuf__pool *pool,
                                                struct shuf__size_class *class)
{
    struct shuf__allocation *next, *allocation = TAILQ_FIRST(&class->free_list);
    for (; allocation && !shuf__allocation_is_rewritable(allocation); allocation = next) {
        next = TAILQ_NEXT(allocation, in_size_class);
        if (!is_full(class))
            continue;
        evict_idle(pool, allocation);
    }
    return allocation;
}

static struct shuf__allocation *reuse(struct shuf__pool *pool,
                                      const struct shuf__memory_request *request, uint64_t size,
                                      bool only_spare)
{
    struct shuf__size_class *class =
        request->buffer ? NULL : find_size_class(pool, request->uid, request->kind, size);
    struct shuf__allocation *allocation = class ? find_rewritable(pool, class) : NULL;
    if (!allocation || (only_spare && allocation->contents && !is_full(class)))
        return NULL;
    pool->evicted += allocation->contents != NULL;
    end_contents(pool, allocation);
    return allocation;
}

/* ---- eviction ---- */

/* Spare ones always, the others only if `all`. Dropping a mapped block would free nothing. */
static bool may_evict(const struct shuf__allocation *allocation, bool all)
{
    return (all || !allocation->contents) && shuf__allocation_is_unmapped(allocation);
}

/* Evicts idle allocations, least recently used first, until `size` bytes fit. */
static bool evict(struct shuf__pool *pool, enum shuf__memory kind, uint64_t size, bool all)
{
    bool any = false;
    struct shuf__allocation *next, *allocation = TAILQ_FIRST(&pool->lru[shuf__side_of(kind)]);
    for (; allocation && !shuf__allocations_fit(pool->allocations, kind, size); allocation = next) {
        next = TAILQ_NEXT(allocation, in_lru);
        if (!may_evict(allocation, all))
            continue;
        evict_idle(pool, allocation);
        any = true;
    }
    return any;
}

/* Whether eviction would free enough: nothing is evicted in vain. */
static bool could_evict(const struct shuf__pool *pool, enum shuf__memory kind, uint64_t size,
                        bool all)
{
    enum shuf__side side = shuf__side_of(kind);
    const struct shuf__budget *budget = &pool->allocations->budgets[side];
    uint64_t freed = 0;
    const struct shuf__allocation *allocation;
    if (size > budget->limit)
        return false;
    TAILQ_FOREACH (allocation, &pool->lru[side], in_lru)
        if (budget->used - freed > budget->limit - size && may_evict(allocation, all))
            freed += allocation->bytes;
    return budget->used - freed <= budget->limit - size;
}

static bool make_fit(struct shuf__pool *pool, enum shuf__memory kind, uint64_t size, bool all)
{
    if (shuf__allocations_fit(pool->allocations, kind, size))
        return true;
    shuf__allocations_sweep(pool->allocations);
    if (!could_evict(pool, kind, size, all))
        return false;
    evict(pool, kind, size, all);
    return shuf__allocations_fit(pool->allocations, kind, size);
}

shuf_status shuf__pool_check_room(const struct shuf__pool *pool, enum shuf__memory kind,
                                  uint64_t bytes, struct shuf__error *error)
{
    const uint64_t size = shuf__allocations_least_size(bytes);
    if (shuf__allocations_measure(pool->allocations, kind, error))
        return error->status;
    if (shuf__allocations_fit(pool->allocations, kind, size))
        return SHUF_OK;
    shuf__allocations_sweep(pool->allocations);
    return could_evict(pool, kind, size, true)
               ? SHUF_OK
               : shuf__allocations_refuse(pool->allocations, kind, size, error);
}

void shuf__pool_hold_to_limits(struct shuf__pool *pool)
{
    static const enum shuf__memory kinds[SHUF__SIDES] = {
        [SHUF__SIDE_HOST] = SHUF__MEMORY_MEMFD, [SHUF__SIDE_DEVICE] = SHUF__MEMORY_CUDA_PRIVATE};
    for (int side = 0; side < SHUF__SIDES; side++) {
        hold_to_limit(pool, (enum shuf__side)side);
        evict(pool, kinds[side], 0, true);
    }
}

bool shuf__pool_make_room(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    enum shuf__memory kind = allocation->kind;
    uint64_t size = allocation->bytes;
    struct shuf__budget *budget = &pool->allocations->budgets[shuf__side_of(kind)];
    shuf__allocation_drop(allocation);
    budget->limit = budget->used; /* the device has less memory than was measured */
    return evict(pool, kind, size, true);
}

/* ---- acquire ---- */

/* A size for which there is room, rounded up if possible; false if there is none. Sets *reused
 * instead if an idle allocation of that size serves. */
static bool find_room(struct shuf__pool *pool, const struct shuf__memory_request *request, bool all,
                      uint64_t *size, struct shuf__allocation **reused)
{
    const enum shuf__memory kind = request->kind;
    *size = shuf__allocations_size(pool->allocations, kind, request->bytes);
    if (all && !shuf__allocations_fit(pool->allocations, kind, *size) &&
        (*reused = reuse(pool, request, *size, false)) != NULL)
        return true;
    if (make_fit(pool, kind, *size, all))
        return true;
    *size = shuf__allocations_least_size(request->bytes);
    return make_fit(pool, kind, *size, all);
}

static struct shuf__allocation *acquire_new(struct shuf__pool *pool,
                                            const struct shuf__memory_request *request, bool all,
                                            struct shuf__error *error)
{
    uint64_t size;
    struct shuf__allocation *allocation = NULL;
    if (shuf__allocations_measure(pool->allocations, request->kind, error))
        return NULL;
    if (!find_room(pool, request, all, &size, &allocation)) {
        if (all)
            shuf__allocations_refuse(pool->allocations, request->kind, size, error);
        return NULL;
    }
    if (!allocation)
        allocation = shuf__allocation_make(pool->allocations, request->uid, request->kind, size,
                                           request->buffer);
    if (!allocation)
        shuf__fail(error, SHUF_NO_MEMORY, "result: out of memory");
    return allocation;
}

struct shuf__allocation *shuf__pool_acquire(struct shuf__pool *pool,
                                            const struct shuf__memory_request *request,
                                            enum shuf__acquire_policy policy,
                                            struct shuf__error *error)
{
    struct shuf__error ignored;
    const uint64_t size = shuf__allocations_size(pool->allocations, request->kind, request->bytes);
    struct shuf__allocation *allocation = reuse(pool, request, size, policy != SHUF__ACQUIRE_IDLE);
    if (allocation || policy == SHUF__ACQUIRE_SPARE || policy == SHUF__ACQUIRE_IDLE)
        return allocation;
    if (policy == SHUF__ACQUIRE_OPTIONAL)
        return acquire_new(pool, request, false, &ignored);
    return acquire_new(pool, request, true, error);
}

/* ---- giving back ---- */

/* Host memory is freed immediately, even if the engine is busy. */
static void count_and_drop(struct shuf__pool *pool, struct shuf__allocation *allocation,
                           struct shuf__dropped *dropped)
{
    const bool unmapped = shuf__allocation_is_unmapped(allocation);
    *(unmapped ? &dropped->bytes[shuf__side_of(allocation->kind)] : &dropped->mapped) +=
        allocation->bytes;
    dropped->results += allocation->contents != NULL;
    end_contents(pool, allocation);
    if (unmapped && shuf__memory_is_host(allocation->kind))
        shuf__allocation_drop_aside(allocation);
    else
        shuf__allocation_drop(allocation);
}

struct shuf__dropped shuf__pool_drop(struct shuf__pool *pool, bool all, uint32_t uid)
{
    struct shuf__dropped dropped = {0};
    for (int side = 0; side < SHUF__SIDES; side++) {
        struct shuf__allocation *next, *allocation = TAILQ_FIRST(&pool->lru[side]);
        for (; allocation; allocation = next) {
            next = TAILQ_NEXT(allocation, in_lru);
            if (all || allocation->uid == uid)
                count_and_drop(pool, allocation, &dropped);
        }
    }
    return dropped;
}

void shuf__pool_give_back(struct shuf__pool *pool, enum shuf__side side, uint64_t bytes,
                          struct shuf__dropped *dropped)
{
    struct shuf__allocation *next, *allocation = TAILQ_FIRST(&pool->lru[side]);
    for (uint64_t freed = 0; allocation && freed < bytes; allocation = next) {
        next = TAILQ_NEXT(allocation, in_lru);
        if (!shuf__allocation_is_unmapped(allocation))
            continue;
        freed += allocation->committed;
        pool->evicted += allocation->contents != NULL;
        count_and_drop(pool, allocation, dropped);
    }
}

/* ---- all of them ---- */

void shuf__pool_init(struct shuf__pool *pool, uv_loop_t *loop)
{
    for (int side = 0; side < SHUF__SIDES; side++)
        TAILQ_INIT(&pool->lru[side]);
    LIST_INIT(&pool->sizes);
    uv_timer_init(loop, &pool->trim);
    pool->trim.data = pool;
}

void shuf__pool_clear(struct shuf__pool *pool)
{
    struct shuf__allocation *allocation;
    for (int side = 0; side < SHUF__SIDES; side++)
        while ((allocation = TAILQ_FIRST(&pool->lru[side])) != NULL)
            drop_idle(pool, allocation);
    uv_timer_stop(&pool->trim);
}
