/* SPDX-License-Identifier: MIT
 *
 * See acquire.h.
 */
#include "acquire.h"

#include "room.h"

/* A size class (pool.h) is full above 64 idle allocations or above 128 MiB, but never with only one
 * allocation. If the class is full, a request overwrites its least recently used result instead of
 * allocating a block. Small results are cheap to compute again, and clients already have these few
 * blocks mapped. For a large result, new memory takes longer than the computation. */
enum { KEEP_MOST = 64 };
static const uint64_t keep_bytes = UINT64_C(128) << 20;

/* ---- Warm blocks ---- */

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
    const struct shuf__need need = {.uid = request->uid, .kind = request->kind, .size = size};
    if (!shuf__room_may_have(pool->allocations, &need) ||
        !shuf__room_is_certain(pool->allocations, &need, size) ||
        !shuf__allocation_give(allocation, request->uid))
        return NULL;
    return shuf__pool_take_warm(pool, side);
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

/* ---- Reuse ---- */

static bool is_full(const struct shuf__size_class *class)
{
    uint64_t keep = keep_bytes / class->size;
    return class->count > KEEP_MOST || class->count > (keep < 1 ? 1 : keep);
}

/* Finds the least recently used allocation whose block may be rewritten. While the class is full,
 * it evicts the allocations that may not be rewritten. Otherwise their number would grow without
 * limit. A full class has at least two allocations, so this never empties the class, which would
 * free it. */
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

/* Whether a request may overwrite the allocation although there may be room for a new one. It may
 * if the allocation is spare, its class is full, the pool would drop it when the new block is idle,
 * or it has the size of the warm block. Touching a second block of that size would take long. */
static bool may_replace(const struct shuf__pool *pool, const struct shuf__allocation *allocation,
                        const struct shuf__size_class *class)
{
    return !allocation->contents || allocation->is_warm_sized || is_full(class) ||
           shuf__pool_would_drop(pool, allocation, class->size);
}

static struct shuf__allocation *reuse(struct shuf__pool *pool,
                                      const struct shuf__memory_request *request, uint64_t size,
                                      bool only_spare)
{
    struct shuf__size_class *class =
        request->buffer ? NULL : shuf__pool_find_class(pool, request->uid, request->kind, size);
    struct shuf__allocation *allocation = class ? find_rewritable(pool, class) : NULL;
    if (!allocation || (only_spare && !may_replace(pool, allocation, class)))
        return NULL;
    pool->evicted += allocation->contents != NULL;
    shuf__pool_end_contents(pool, allocation);
    return allocation;
}

/* ---- Eviction ---- */

/* A walk through the idle allocations, which asks the kernel about each block. A user may send
 * thousands of requests that are refused. So if the walks have taken much time, the last answer
 * about a block counts until the client reports that it has unmapped the block, until the next
 * request uses it, or until the next reading (reading.h). A walk that evicts asks again about a
 * block that was not mapped. */
struct walk {
    struct shuf__pool *pool;
    bool evicts;
    bool reuses; /* the answers of the kernel to earlier walks */
};

static struct walk begin_walk(struct shuf__pool *pool, bool evicts)
{
    const struct walk walk = {pool, evicts, shuf__reading_is_fresh(&pool->mapped_reading)};
    if (!walk.reuses)
        shuf__reading_begin(&pool->mapped_reading);
    return walk;
}

static void end_walk(const struct walk *walk)
{
    if (!walk->reuses)
        shuf__reading_end(&walk->pool->mapped_reading);
}

/* Spare allocations may be evicted, the others only if `all`. A mapped block is not evicted,
 * because that frees no memory. */
static bool may_evict(const struct walk *walk, struct shuf__allocation *allocation, bool all)
{
    if (!all && allocation->contents)
        return false;
    if (!walk->reuses || allocation->found == SHUF__FOUND_NOTHING ||
        (walk->evicts && allocation->found == SHUF__FOUND_UNMAPPED))
        allocation->found =
            shuf__allocation_is_unmapped(allocation) ? SHUF__FOUND_UNMAPPED : SHUF__FOUND_MAPPED;
    return allocation->found == SHUF__FOUND_UNMAPPED;
}

static struct shuf__need need_of(const struct shuf__memory_request *request, uint64_t size)
{
    return (struct shuf__need){.uid = request->uid, .kind = request->kind, .size = size};
}

/* Whether a limit on the number of blocks is reached, so that not even a block without bytes fits.
 */
static bool lacks_blocks(const struct shuf__pool *pool, const struct shuf__need *need,
                         const struct shuf__freed *freed)
{
    const struct shuf__need block = {.uid = need->uid, .kind = need->kind};
    return !shuf__room_has(pool->allocations, &block, freed);
}

static enum shuf__side other_side(enum shuf__memory kind)
{
    return shuf__side_of(kind) == SHUF__SIDE_HOST ? SHUF__SIDE_DEVICE : SHUF__SIDE_HOST;
}

/* Evicts idle allocations of one side, least recently used first, until there is room. With `own`
 * it evicts only those of the need's user. */
static bool evict_from(struct shuf__pool *pool, enum shuf__side side, const struct shuf__need *need,
                       bool all, bool own)
{
    bool any = false;
    const struct walk walk = begin_walk(pool, true);
    struct shuf__allocation *next, *allocation = TAILQ_FIRST(&pool->lru[side]);
    for (; allocation && !shuf__room_has(pool->allocations, need, NULL); allocation = next) {
        next = TAILQ_NEXT(allocation, in_lru);
        if ((own && allocation->uid != need->uid) || !may_evict(&walk, allocation, all))
            continue;
        shuf__pool_evict(pool, allocation);
        any = true;
    }
    end_walk(&walk);
    return any;
}

/* A user who has reached its own limits loses its own idle allocations first. */
static bool evict(struct shuf__pool *pool, const struct shuf__need *need, bool all)
{
    bool any = false;
    const enum shuf__side side = shuf__side_of(need->kind);
    struct shuf__need unlimited = *need;
    unlimited.uid = SHUF__UID_DAEMON;
    if (shuf__room_has(pool->allocations, &unlimited, NULL))
        any = evict_from(pool, side, need, all, true);
    any |= evict_from(pool, side, need, all, false);
    if (lacks_blocks(pool, need, NULL))
        any |= evict_from(pool, other_side(need->kind), need, all, false);
    return any;
}

/* Adds what eviction would free, until there is room. */
static void add_evictable(struct shuf__pool *pool, enum shuf__side side,
                          const struct shuf__need *need, bool all, struct shuf__freed *freed)
{
    const struct walk walk = begin_walk(pool, false);
    struct shuf__allocation *allocation;
    TAILQ_FOREACH (allocation, &pool->lru[side], in_lru) {
        if (shuf__room_has(pool->allocations, need, freed))
            break;
        if (!may_evict(&walk, allocation, all))
            continue;
        const uint64_t bytes = side == shuf__side_of(need->kind) ? allocation->bytes : 0;
        const bool own = allocation->uid == need->uid;
        freed->bytes += bytes;
        freed->blocks++;
        freed->own_bytes += own ? bytes : 0;
        freed->own_blocks += own;
    }
    end_walk(&walk);
}

/* False: there would be no room without any idle allocation. Asks the kernel nothing. */
static bool may_suffice(const struct shuf__pool *pool, const struct shuf__need *need)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const uint64_t blocks = pool->idle_count[SHUF__SIDE_HOST] + pool->idle_count[SHUF__SIDE_DEVICE];
    const struct shuf__freed all = {.bytes = pool->idle_bytes[side],
                                    .blocks = blocks,
                                    .own_bytes = pool->idle_bytes[side],
                                    .own_blocks = blocks};
    return shuf__room_has(pool->allocations, need, &all);
}

/* Whether eviction would make room, together with `freed`. Adds the memory that it would free to
 * *freed. A caller asks first, because it evicts nothing if the room would still be too small. */
static bool could_evict(struct shuf__pool *pool, const struct shuf__need *need, bool all,
                        struct shuf__freed *freed)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    if (need->size > pool->allocations->budgets[side].limit)
        return false;
    add_evictable(pool, side, need, all, freed);
    if (lacks_blocks(pool, need, freed))
        add_evictable(pool, other_side(need->kind), need, all, freed);
    return shuf__room_has(pool->allocations, need, freed);
}

/* Gives up the warm block before any result is evicted. Does nothing if the size can never fit. */
static void give_up_warm(struct shuf__pool *pool, const struct shuf__need *need)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    if (need->size > pool->allocations->budgets[side].limit)
        return;
    if (!shuf__room_has(pool->allocations, need, NULL))
        shuf__pool_drop_warm(pool, side);
    if (!shuf__room_has(pool->allocations, need, NULL) && pool->abandon_warm)
        pool->abandon_warm(pool->warm_context, side);
}

static bool make_fit(struct shuf__pool *pool, const struct shuf__need *need, bool all)
{
    struct shuf__freed freed = {0};
    if (shuf__room_has(pool->allocations, need, NULL))
        return true;
    shuf__allocations_sweep_now(pool->allocations);
    give_up_warm(pool, need);
    if (!may_suffice(pool, need) || !could_evict(pool, need, all, &freed))
        return false;
    evict(pool, need, all);
    return shuf__room_has(pool->allocations, need, NULL);
}

/* The bytes of results that clients read slowly. If `only` is not NULL, only those of that user. */
static uint64_t slow_bytes(const struct shuf__pool *pool, const struct shuf__need *need,
                           const uint32_t *only)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const uint64_t used = pool->allocations->budgets[side].used;
    const uint64_t slow =
        pool->slow_reader_bytes ? pool->slow_reader_bytes(pool->reader_context, side, only) : 0;
    return slow < used ? slow : used; /* readers may share a result */
}

/* Cuts off a slow reader, but only if its memory can make room. Returns whether it did. */
static bool cut_off_reader(struct shuf__pool *pool, const struct shuf__need *need)
{
    struct shuf__freed freed = {.bytes = slow_bytes(pool, need, NULL),
                                .own_bytes = slow_bytes(pool, need, &need->uid)};
    freed.blocks = freed.bytes > 0;
    freed.own_blocks = freed.own_bytes > 0;
    return freed.bytes > 0 && could_evict(pool, need, true, &freed) &&
           pool->cut_off_reader(pool->reader_context, shuf__side_of(need->kind));
}

/* Counts a shortage, so that clients unmap the blocks that they have mapped without a lease. */
static shuf_status refuse(struct shuf__pool *pool, const struct shuf__need *need,
                          struct shuf__error *error)
{
    struct shuf__freed freed = {0};
    pool->allocations->shortages++;
    could_evict(pool, need, true, &freed);
    return shuf__refuse_allocation(pool->allocations, need, &freed, error);
}

shuf_status shuf__pool_check_room(struct shuf__pool *pool,
                                  const struct shuf__memory_request *request,
                                  struct shuf__error *error)
{
    const struct shuf__need need =
        need_of(request, shuf__allocations_least_size(request->kind, request->bytes));
    struct shuf__freed freed = {0};
    if (shuf__allocations_measure(pool->allocations, request->kind, error))
        return error->status;
    if (shuf__room_has(pool->allocations, &need, NULL))
        return SHUF_OK;
    shuf__allocations_sweep_now(pool->allocations);
    give_up_warm(pool, &need);
    for (; !could_evict(pool, &need, true, &freed); freed = (struct shuf__freed){0})
        if (!cut_off_reader(pool, &need))
            return refuse(pool, &need, error);
    return SHUF_OK;
}

bool shuf__pool_may_have_room(struct shuf__pool *pool, const struct shuf__memory_request *request)
{
    const struct shuf__need need =
        need_of(request, shuf__allocations_least_size(request->kind, request->bytes));
    shuf__allocations_refresh(pool->allocations, request->kind);
    return may_suffice(pool, &need);
}

void shuf__pool_hold_to_limits(struct shuf__pool *pool)
{
    static const enum shuf__memory kinds[SHUF__SIDES] = {
        [SHUF__SIDE_HOST] = SHUF__MEMORY_MEMFD, [SHUF__SIDE_DEVICE] = SHUF__MEMORY_CUDA_PRIVATE};
    for (int side = 0; side < SHUF__SIDES; side++) {
        const struct shuf__need nothing = {.uid = SHUF__UID_DAEMON, .kind = kinds[side]};
        shuf__pool_hold_to_limit(pool, (enum shuf__side)side);
        give_up_warm(pool, &nothing);
        evict(pool, &nothing, true);
    }
}

bool shuf__pool_make_room(struct shuf__pool *pool, struct shuf__allocation *allocation)
{
    const struct shuf__need need = {
        .uid = SHUF__UID_DAEMON, .kind = allocation->kind, .size = allocation->bytes};
    const enum shuf__side side = shuf__side_of(need.kind);
    struct shuf__budget *budget = &pool->allocations->budgets[side];
    shuf__allocation_drop(allocation);
    budget->limit = budget->used; /* the device has less memory than was measured */
    const bool warm = shuf__pool_drop_warm(pool, side);
    return evict(pool, &need, true) || warm;
}

/* ---- Acquire ---- */

/* Makes room for the request, and sets *size to the size of a new allocation, rounded up if
 * possible. If an idle allocation of that size can be used instead, sets *reused. False: there is
 * no room. */
static bool find_room(struct shuf__pool *pool, const struct shuf__memory_request *request, bool all,
                      uint64_t *size, struct shuf__allocation **reused)
{
    struct shuf__need need = need_of(request, size_for(pool, request));
    *size = need.size;
    if (all && !shuf__room_has(pool->allocations, &need, NULL) &&
        (*reused = reuse(pool, request, *size, false)) != NULL)
        return true;
    if (make_fit(pool, &need, all))
        return true;
    *size = need.size = shuf__allocations_least_size(request->kind, request->bytes);
    while (!make_fit(pool, &need, all))
        if (!all || !cut_off_reader(pool, &need))
            return false;
    return true;
}

/* Whether there is room for a new allocation now. Later there may be more: memory and descriptors
 * of freed blocks. */
static bool is_certain(const struct shuf__allocations *allocations, const struct shuf__need *need)
{
    return allocations->count + allocations->freeing < allocations->max_count &&
           shuf__room_is_certain(allocations, need, 0);
}

/* The memory of earlier results is being freed, so the job begins again later. The client gets this
 * error only if its job is cancelled before that. */
static void fail_of_freeing(struct shuf__error *error)
{
    shuf__fail(error, SHUF_CANCELLED, "result: cancelled");
}

/* Makes an allocation, unless it is not yet certain that there is room for it. */
static struct shuf__allocation *make_certain(struct shuf__pool *pool,
                                             const struct shuf__memory_request *request,
                                             uint64_t size, struct shuf__error *error)
{
    const struct shuf__need need = need_of(request, size);
    if (!is_certain(pool->allocations, &need)) {
        fail_of_freeing(error);
        return NULL;
    }
    struct shuf__allocation *allocation = shuf__allocation_make(
        pool->allocations, request->uid, request->kind, size, request->buffer);
    if (!allocation)
        shuf__fail(error, SHUF_NO_MEMORY, "result: out of memory");
    return allocation;
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
        const struct shuf__need need = need_of(request, size);
        if (all)
            refuse(pool, &need, error);
        return NULL;
    }
    return allocation ? allocation : make_certain(pool, request, size, error);
}

enum shuf__begin shuf__pool_fail_begin(struct shuf__error *error)
{
    if (error->status != SHUF_CANCELLED)
        return SHUF__BEGIN_FAILED;
    fail_of_freeing(error); /* without the words about the workspace */
    return SHUF__BEGIN_LATER;
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

/* ---- Workspaces ---- */

static shuf_status refuse_workspace(const struct shuf__error *why, struct shuf__error *error)
{
    return shuf__fail(error, why->status, "for its workspace, %s", why->text);
}

static bool on_one_side(const struct shuf__job_memory *memory)
{
    return shuf__side_of(memory->workspace.kind) == shuf__side_of(memory->result.kind);
}

shuf_status shuf__workspace_check_fit(const struct shuf__pool *pool,
                                      const struct shuf__job_memory *memory,
                                      struct shuf__error *error)
{
    const struct shuf__workspace *needs = &memory->workspace;
    const struct shuf__memory_request *result = &memory->result;
    const struct shuf__need space = {result->uid, needs->kind, needs->least},
                            whole = {result->uid, result->kind, result->bytes};
    struct shuf__error why;
    uint64_t beside = memory->input ? memory->input->bytes : 0;
    if (on_one_side(memory))
        beside += needs->least;
    if (shuf__refusal_check_fit(pool->allocations, &whole, beside, error))
        return error->status;
    if (!on_one_side(memory) && shuf__refusal_check_fit(pool->allocations, &space, 0, &why))
        return refuse_workspace(&why, error);
    return SHUF_OK;
}

/* Checks that there is room for the smallest workspace and, if `with_result`, for the result too.
 */
static shuf_status check_sum(struct shuf__pool *pool, const struct shuf__job_memory *memory,
                             bool with_result, struct shuf__error *error)
{
    struct shuf__memory_request request = {
        .uid = memory->result.uid,
        .kind = memory->workspace.kind,
        .bytes = shuf__allocations_least_size(memory->workspace.kind, memory->workspace.least)};
    if (with_result)
        request.bytes += shuf__allocations_least_size(memory->result.kind, memory->result.bytes);
    return shuf__pool_check_room(pool, &request, error);
}

/* Idle blocks that a client has mapped cannot be freed, but the result can reuse one. So if
 * workspace and result do not both fit, tries again with an idle block for the result. */
shuf_status shuf__workspace_check_room(struct shuf__pool *pool,
                                       const struct shuf__job_memory *memory,
                                       struct shuf__allocation **result, struct shuf__error *error)
{
    struct shuf__error why;
    const bool together = on_one_side(memory);
    if (memory->workspace.least == 0 ||
        check_sum(pool, memory, together && !*result, &why) == SHUF_OK)
        return SHUF_OK;
    if (!together)
        return refuse_workspace(&why, error);
    if (!*result &&
        (*result = shuf__pool_acquire(pool, &memory->result, SHUF__ACQUIRE_IDLE, NULL)) &&
        check_sum(pool, memory, false, &why) == SHUF_OK)
        return SHUF_OK;
    return shuf__fail(error, why.status, "with its workspace, %s", why.text);
}

shuf_status shuf__workspace_acquire(struct shuf__pool *pool, const struct shuf__job_memory *memory,
                                    bool sparing, struct shuf__held_workspace *workspace,
                                    struct shuf__error *error)
{
    struct shuf__error why;
    const struct shuf__workspace *needs = &memory->workspace;
    struct shuf__memory_request request = {
        .uid = memory->result.uid, .kind = needs->kind, .bytes = needs->best};
    *workspace = (struct shuf__held_workspace){.bytes = needs->best};
    if (needs->best > needs->least && !sparing)
        workspace->allocation = shuf__pool_acquire(pool, &request, SHUF__ACQUIRE_OPTIONAL, NULL);
    if (workspace->allocation || needs->least == 0)
        return SHUF_OK;
    request.bytes = workspace->bytes = needs->least;
    workspace->allocation = shuf__pool_acquire(pool, &request, SHUF__ACQUIRE_REQUIRED, &why);
    return workspace->allocation ? SHUF_OK : refuse_workspace(&why, error);
}

shuf_status shuf__workspace_open(const struct shuf__held_workspace *workspace,
                                 const struct shuf__workspace *needs, struct shuf__backend *backend,
                                 const struct shuf__block **block, struct shuf__error *error)
{
    *block = NULL;
    struct shuf__allocation *allocation = workspace->allocation;
    if (!allocation)
        return SHUF_OK;
    if (!allocation->block.memory &&
        backend->ops->alloc(backend, allocation->kind, allocation->bytes, &allocation->block,
                            error))
        return needs->least == 0 ? SHUF_OK : error->status;
    *block = &allocation->block;
    return SHUF_OK;
}

/* The kernel commits host memory at its first write, so only written bytes count as committed. */
static void note_committed(struct shuf__allocation *allocation, uint64_t written)
{
    const bool host = shuf__memory_is_host(allocation->kind);
    shuf__allocation_commit(allocation, host ? written : allocation->bytes);
}

void shuf__workspace_release(struct shuf__pool *pool, struct shuf__held_workspace *workspace,
                             bool done)
{
    struct shuf__allocation *allocation = workspace->allocation;
    workspace->allocation = NULL;
    if (!allocation)
        return;
    const bool allocated = allocation->block.memory != NULL;
    if (allocated)
        note_committed(allocation, done ? workspace->bytes : 0);
    if (!allocated || !shuf__pool_keep(pool, allocation, NULL))
        shuf__allocation_drop(allocation);
}
