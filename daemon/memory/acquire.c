/* SPDX-License-Identifier: MIT
 *
 * See acquire.h.
 */
#include "acquire.h"

#include "refusal.h"

/* A size class is full above 64 idle allocations or above 128 MiB, but never with only one. If it
 * is full, a request overwrites the least recently used result instead of allocating a block. Small
 * results are cheap to compute again, and clients already have these few blocks mapped. For a large
 * result, new memory takes longer than the computation. */
enum { KEEP_MOST = 64 };
static const uint64_t keep_bytes = UINT64_C(128) << 20;

/* ---- warm blocks ---- */

/* Gives the warm block to a request. A buffer cannot have it, because no client could write to it.
 */
static struct shuf__allocation *use_warm(struct shuf__pool *pool,
                                         const struct shuf__memory_request *request, uint64_t size)
{
    const enum shuf__side side = shuf__side_of(request->kind);
    struct shuf__allocation *allocation = pool->warm[side];
    if (!allocation || request->buffer || allocation->kind != request->kind ||
        allocation->bytes != size)
        return NULL;
    shuf__pool_take_warm(pool, side);
    allocation->uid = request->uid;
    return allocation;
}

/* The size of an allocation for the request. If the request needs more than half of the warm block,
 * it is the size of the warm block. */
static uint64_t size_for(const struct shuf__pool *pool, const struct shuf__memory_request *request)
{
    const struct shuf__allocations *all = pool->allocations;
    const uint64_t warm = all->budgets[shuf__side_of(request->kind)].warm_size;
    if (!request->buffer && !shuf__memory_is_private(request->kind) && request->bytes <= warm &&
        request->bytes > warm / 2)
        return warm;
    return shuf__allocations_size(all, request->kind, request->bytes);
}

/* ---- reuse ---- */

static bool is_full(const struct shuf__size_class *class)
{
    uint64_t keep = keep_bytes / class->size;
    return class->count > KEEP_MOST || class->count > (keep < 1 ? 1 : keep);
}

/* The least recently used allocation whose block may be rewritten. While the class is full, drops
 * the allocations that may not be rewritten, else their number would grow without limit. A full
 * class has more than one allocation, so one remains. */
static struct shuf__allocation *find_rewritable(struct shuf__pool *pool,
                                                struct shuf__size_class *class)
{
    struct shuf__allocation *next, *allocation = TAILQ_FIRST(&class->idle);
    for (; allocation && !shuf__allocation_is_rewritable(allocation); allocation = next) {
        next = TAILQ_NEXT(allocation, in_size_class);
        if (!is_full(class))
            continue;
        shuf__pool_evict(pool, allocation);
    }
    return allocation;
}

/* Besides spare allocations and those of a full class, a request may overwrite an allocation of the
 * warm block's size. A second block of this size would take long to touch. */
static bool may_replace(const struct shuf__allocation *allocation,
                        const struct shuf__size_class *class)
{
    return !allocation->contents || allocation->is_warm_sized || is_full(class);
}

static struct shuf__allocation *reuse(struct shuf__pool *pool,
                                      const struct shuf__memory_request *request, uint64_t size,
                                      bool only_spare)
{
    struct shuf__size_class *class =
        request->buffer ? NULL : shuf__pool_find_class(pool, request->uid, request->kind, size);
    struct shuf__allocation *allocation = class ? find_rewritable(pool, class) : NULL;
    if (!allocation || (only_spare && !may_replace(allocation, class)))
        return NULL;
    pool->evicted += allocation->contents != NULL;
    shuf__pool_end_contents(pool, allocation);
    return allocation;
}

/* ---- eviction ---- */

/* Spare allocations may be evicted, the others only if `all`. A mapped block is not evicted,
 * because that frees no memory. */
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
        shuf__pool_evict(pool, allocation);
        any = true;
    }
    return any;
}

/* Whether evicting idle allocations makes room for `size` bytes, after `freed` other bytes are
 * freed. If not, the caller evicts nothing. */
static bool could_evict(const struct shuf__pool *pool, enum shuf__memory kind, uint64_t size,
                        bool all, uint64_t freed)
{
    enum shuf__side side = shuf__side_of(kind);
    const struct shuf__budget *budget = &pool->allocations->budgets[side];
    const struct shuf__allocation *allocation;
    if (size > budget->limit)
        return false;
    TAILQ_FOREACH (allocation, &pool->lru[side], in_lru)
        if (budget->used - freed > budget->limit - size && may_evict(allocation, all))
            freed += allocation->bytes;
    return budget->used - freed <= budget->limit - size;
}

/* If the size can fit at all, gives up the warm block before results: it has no contents. */
static void give_up_warm(struct shuf__pool *pool, enum shuf__memory kind, uint64_t size)
{
    const enum shuf__side side = shuf__side_of(kind);
    if (size > pool->allocations->budgets[side].limit)
        return;
    if (!shuf__allocations_fit(pool->allocations, kind, size))
        shuf__pool_drop_warm(pool, side);
    if (!shuf__allocations_fit(pool->allocations, kind, size) && pool->abandon_warm)
        pool->abandon_warm(pool->warm_context, side);
}

static bool make_fit(struct shuf__pool *pool, enum shuf__memory kind, uint64_t size, bool all)
{
    if (shuf__allocations_fit(pool->allocations, kind, size))
        return true;
    shuf__allocations_sweep(pool->allocations);
    give_up_warm(pool, kind, size);
    if (!could_evict(pool, kind, size, all, 0))
        return false;
    evict(pool, kind, size, all);
    return shuf__allocations_fit(pool->allocations, kind, size);
}

/* Cuts off one slow reader, but only if `size` bytes would fit after all slow readers are cut off.
 * Returns whether a reader was cut off. */
static bool cut_off_reader(struct shuf__pool *pool, enum shuf__memory kind, uint64_t size)
{
    const enum shuf__side side = shuf__side_of(kind);
    const uint64_t used = pool->allocations->budgets[side].used;
    uint64_t slow =
        pool->slow_reader_bytes ? pool->slow_reader_bytes(pool->reader_context, side) : 0;
    slow = slow < used ? slow : used; /* a result that readers share is counted several times */
    return slow > 0 && could_evict(pool, kind, size, true, slow) &&
           pool->cut_off_reader(pool->reader_context, side);
}

/* Writes the error. Also counts a shortage, so that clients unmap blocks that they do not lease. */
static shuf_status refuse(struct shuf__pool *pool, const struct shuf__memory_request *request,
                          uint64_t size, struct shuf__error *error)
{
    pool->allocations->shortages++;
    return shuf__refuse_allocation(pool->allocations, request->uid, request->kind, size, error);
}

shuf_status shuf__pool_check_room(struct shuf__pool *pool,
                                  const struct shuf__memory_request *request,
                                  struct shuf__error *error)
{
    const enum shuf__memory kind = request->kind;
    const uint64_t size = shuf__allocations_least_size(request->kind, request->bytes);
    if (shuf__allocations_measure(pool->allocations, kind, error))
        return error->status;
    if (shuf__allocations_fit(pool->allocations, kind, size))
        return SHUF_OK;
    shuf__allocations_sweep(pool->allocations);
    give_up_warm(pool, kind, size);
    while (!could_evict(pool, kind, size, true, 0))
        if (!cut_off_reader(pool, kind, size))
            return refuse(pool, request, size, error);
    return SHUF_OK;
}

void shuf__pool_hold_to_limits(struct shuf__pool *pool)
{
    static const enum shuf__memory kinds[SHUF__SIDES] = {
        [SHUF__SIDE_HOST] = SHUF__MEMORY_MEMFD, [SHUF__SIDE_DEVICE] = SHUF__MEMORY_CUDA_PRIVATE};
    for (int side = 0; side < SHUF__SIDES; side++) {
        shuf__pool_hold_to_limit(pool, (enum shuf__side)side);
        give_up_warm(pool, kinds[side], 0);
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
    const bool warm = shuf__pool_drop_warm(pool, shuf__side_of(kind));
    return evict(pool, kind, size, true) || warm;
}

/* ---- acquire ---- */

/* Makes room for the request, and sets *size to the size of a new allocation, rounded up if
 * possible. If an idle allocation of that size can be used instead, sets *reused. False: there is
 * no room. */
static bool find_room(struct shuf__pool *pool, const struct shuf__memory_request *request, bool all,
                      uint64_t *size, struct shuf__allocation **reused)
{
    const enum shuf__memory kind = request->kind;
    *size = size_for(pool, request);
    if (all && !shuf__allocations_fit(pool->allocations, kind, *size) &&
        (*reused = reuse(pool, request, *size, false)) != NULL)
        return true;
    if (make_fit(pool, kind, *size, all))
        return true;
    *size = shuf__allocations_least_size(request->kind, request->bytes);
    while (!make_fit(pool, kind, *size, all))
        if (!all || !cut_off_reader(pool, kind, *size))
            return false;
    return true;
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
            refuse(pool, request, size, error);
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
    const uint64_t size = size_for(pool, request);
    struct shuf__allocation *allocation = reuse(pool, request, size, policy != SHUF__ACQUIRE_IDLE);
    if (!allocation)
        allocation = use_warm(pool, request, size);
    if (allocation || policy == SHUF__ACQUIRE_SPARE || policy == SHUF__ACQUIRE_IDLE)
        return allocation;
    if (policy == SHUF__ACQUIRE_OPTIONAL)
        return acquire_new(pool, request, false, &ignored);
    return acquire_new(pool, request, true, error);
}
