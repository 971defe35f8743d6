/* SPDX-License-Identifier: MIT
 *
 * See allocations.h.
 */
#include "allocations.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    RESERVE = 16,      /* 1/16 of a device's memory is left to other programs */
    SWEEP_MS = 20,     /* between two sweeps of the pending allocations */
    SWEEP_COUNT = 256, /* allocations checked in one sweep, at most */
};

/* ---- budgets ---- */

enum shuf__side shuf__side_of(enum shuf__memory kind)
{
    return shuf__memory_is_host(kind) ? SHUF__SIDE_HOST : SHUF__SIDE_DEVICE;
}

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static const struct shuf__budget *budget_of(const struct shuf__allocations *allocations,
                                            enum shuf__memory kind)
{
    return &allocations->budgets[shuf__side_of(kind)];
}

static const struct shuf__backend_ops *ops_of(const struct shuf__allocation *allocation)
{
    return shuf__engine_backend(allocation->all->engine)->ops;
}

static void set_committed(struct shuf__allocation *allocation, uint64_t bytes)
{
    allocation->all->budgets[shuf__side_of(allocation->kind)].uncommitted +=
        allocation->committed - bytes;
    allocation->committed = bytes;
}

/* The committed bytes may shrink: a client can punch holes into its buffer. */
static void measure_committed(struct shuf__allocation *allocation)
{
    const uint64_t committed = ops_of(allocation)->committed(&allocation->block);
    set_committed(allocation, committed < allocation->bytes ? committed : allocation->bytes);
}

/* The system no longer counts the bytes as available that clients have written since. */
static void measure_buffers(struct shuf__allocations *allocations, enum shuf__memory kind)
{
    struct shuf__allocation *allocation;
    if (allocations->buffers > 0 && shuf__memory_is_host(kind))
        LIST_FOREACH (allocation, &allocations->list, link)
            if (allocation->client_writable)
                measure_committed(allocation);
}

shuf_status shuf__allocations_measure(struct shuf__allocations *allocations, enum shuf__memory kind,
                                      struct shuf__error *error)
{
    struct shuf__budget *budget = &allocations->budgets[shuf__side_of(kind)];
    struct shuf__backend *backend = shuf__engine_backend(allocations->engine);
    uint64_t available, total;
    budget->limit = budget->max_limit = budget->configured;
    if (budget->configured != 0)
        return SHUF_OK;
    measure_buffers(allocations, kind);
    if (backend->ops->memory(backend, kind, &available, &total, error))
        return error->status;
    uint64_t ours = budget->used - budget->uncommitted + budget->releasing,
             reserve = total / RESERVE,
             could_be_ours = ours + (available > reserve ? available - reserve : 0);
    budget->max_limit = (total - reserve) / budget->sharers;
    budget->limit = could_be_ours < budget->max_limit ? could_be_ours : budget->max_limit;
    return SHUF_OK;
}

uint64_t shuf__allocations_least_size(uint64_t bytes)
{
    return round_up(bytes, SHUF__BLOCK_UNIT);
}

/* Eight sizes between two powers of two. */
uint64_t shuf__allocations_size(const struct shuf__allocations *allocations, enum shuf__memory kind,
                                uint64_t bytes)
{
    uint64_t step = SHUF__BLOCK_UNIT;
    while (step <= bytes / 16)
        step *= 2;
    uint64_t rounded = round_up(bytes, step);
    return rounded <= budget_of(allocations, kind)->limit ? rounded
                                                          : shuf__allocations_least_size(bytes);
}

bool shuf__allocations_fit(const struct shuf__allocations *allocations, enum shuf__memory kind,
                           uint64_t size)
{
    const struct shuf__budget *budget = budget_of(allocations, kind);
    return allocations->count < allocations->max_count && size <= budget->limit &&
           budget->used <= budget->limit - size;
}

static const char *budget_name(enum shuf__memory kind)
{
    return shuf__side_of(kind) == SHUF__SIDE_HOST ? "host_memory" : "device_memory";
}

static shuf_status too_large(uint64_t size, uint64_t limit, enum shuf__memory kind,
                             struct shuf__error *error)
{
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "block of %" PRIu64 " bytes: expected at most %" PRIu64
                      ", all that results may hold (%s)",
                      size, limit, budget_name(kind));
}

shuf_status shuf__allocations_could_fit(const struct shuf__allocations *allocations,
                                        enum shuf__memory kind, uint64_t bytes, uint64_t beside,
                                        struct shuf__error *error)
{
    uint64_t size = shuf__allocations_least_size(bytes);
    uint64_t limit = budget_of(allocations, kind)->max_limit;
    uint64_t taken = shuf__allocations_least_size(beside);
    if (size > limit)
        return too_large(size, limit, kind, error);
    if (taken <= limit - size)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "block of %" PRIu64 " bytes beside %" PRIu64
                      " that its input and the work on it take: expected at most %" PRIu64
                      " together, all that results may hold (%s)",
                      size, taken, limit, budget_name(kind));
}

/* With SHUF_BUSY the client tries again: the allocation fits when other results are gone. */
shuf_status shuf__allocations_refuse(const struct shuf__allocations *allocations,
                                     enum shuf__memory kind, uint64_t size,
                                     struct shuf__error *error)
{
    const struct shuf__budget *budget = budget_of(allocations, kind);
    if (size > budget->limit)
        return too_large(size, budget->limit, kind, error);
    if (allocations->count >= allocations->max_count)
        return shuf__fail(error, SHUF_BUSY,
                          "blocks %" PRIu64 ": the most that the limit of open files allows; try "
                          "again",
                          allocations->count);
    return shuf__fail(error, SHUF_BUSY,
                      "block of %" PRIu64 " bytes: %" PRIu64 " of %" PRIu64
                      " are in use by other results (%s); try again",
                      size, budget->used, budget->limit, budget_name(kind));
}

/* ---- one allocation ---- */

struct shuf__allocation *shuf__allocation_make(struct shuf__allocations *allocations, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size, bool buffer)
{
    struct shuf__allocation *allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return NULL;
    allocation->all = allocations;
    allocation->id = ++allocations->last_id;
    allocation->bytes = size;
    allocation->uid = uid;
    allocation->kind = kind;
    allocation->buffer = buffer;
    allocation->block.fd = -1;
    LIST_INIT(&allocation->mappings);
    LIST_INSERT_HEAD(&allocations->list, allocation, link);
    allocations->count++;
    allocations->buffers += buffer;
    allocations->budgets[shuf__side_of(kind)].used += size;
    allocations->budgets[shuf__side_of(kind)].uncommitted += size;
    return allocation;
}

void shuf__allocation_commit(struct shuf__allocation *allocation, uint64_t bytes)
{
    if (bytes > allocation->committed)
        set_committed(allocation, bytes);
}

void shuf__allocation_set_client_writable(struct shuf__allocation *allocation)
{
    allocation->client_writable = true;
    measure_committed(allocation);
}

/* The kernel knows about host memory; about device memory only the clients do. */
bool shuf__allocation_is_unmapped(const struct shuf__allocation *allocation)
{
    if (!allocation->block.memory)
        return true;
    const enum shuf__mapped mapped = ops_of(allocation)->mapped(&allocation->block);
    return mapped == SHUF__UNMAPPED ||
           (mapped == SHUF__MAPPED_UNKNOWN && LIST_EMPTY(&allocation->mappings));
}

bool shuf__allocation_is_rewritable(struct shuf__allocation *allocation)
{
    if (allocation->untracked && shuf__allocation_is_unmapped(allocation))
        allocation->untracked = false;
    return !allocation->untracked && allocation->detached == 0;
}

static struct shuf__allocation *allocation_of(struct shuf__engine_job *job)
{
    return (struct shuf__allocation *)((char *)job - offsetof(struct shuf__allocation, release));
}

static void run_release(struct shuf__engine_job *job, struct shuf__backend *backend)
{
    struct shuf__allocation *allocation = allocation_of(job);
    if (allocation->block.memory)
        backend->ops->free(backend, &allocation->block);
}

static void end_release(struct shuf__engine_job *job)
{
    struct shuf__allocation *allocation = allocation_of(job);
    allocation->all->budgets[shuf__side_of(allocation->kind)].releasing -= allocation->committed;
    free(allocation);
}

static void unlink_allocation(struct shuf__allocation *allocation)
{
    if (allocation->pending_free) {
        TAILQ_REMOVE(&allocation->all->pending_free, allocation, pending_free_link);
        allocation->all->pending_free_count--;
    }
    LIST_REMOVE(allocation, link);
    allocation->all->count--;
    allocation->all->buffers -= allocation->buffer;
    allocation->pending_free = false;
    allocation->all->on_free(allocation);
}

/* The budget has the bytes back at once: the engine frees the block before its next job. */
static void free_now(struct shuf__allocation *allocation)
{
    struct shuf__budget *budget = &allocation->all->budgets[shuf__side_of(allocation->kind)];
    unlink_allocation(allocation);
    budget->used -= allocation->bytes;
    budget->uncommitted -= allocation->bytes - allocation->committed;
    budget->releasing += allocation->committed;
    allocation->release.run = run_release;
    allocation->release.done = end_release;
    shuf__engine_submit_urgent(allocation->all->engine, &allocation->release);
}

static void on_sweep(uv_timer_t *timer)
{
    shuf__allocations_sweep(timer->data);
}

static void free_later(struct shuf__allocation *allocation)
{
    struct shuf__allocations *all = allocation->all;
    allocation->pending_free = true;
    all->pending_free_count++;
    TAILQ_INSERT_TAIL(&all->pending_free, allocation, pending_free_link);
    if (!uv_is_active((uv_handle_t *)&all->sweep))
        uv_timer_start(&all->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

void shuf__allocation_drop(struct shuf__allocation *allocation)
{
    if (shuf__allocation_is_unmapped(allocation))
        free_now(allocation);
    else
        free_later(allocation);
}

void shuf__allocation_free_if_unmapped(struct shuf__allocation *allocation)
{
    if (allocation->pending_free && shuf__allocation_is_unmapped(allocation))
        free_now(allocation);
}

/* ---- all of them ---- */

void shuf__allocations_sweep(struct shuf__allocations *allocations)
{
    struct shuf__allocation *allocation,
        *last = TAILQ_LAST(&allocations->pending_free, shuf__pending_free);
    for (int i = 0;
         i < SWEEP_COUNT && (allocation = TAILQ_FIRST(&allocations->pending_free)) != NULL; i++) {
        bool whole_round = allocation == last;
        TAILQ_REMOVE(&allocations->pending_free, allocation, pending_free_link);
        TAILQ_INSERT_TAIL(&allocations->pending_free, allocation, pending_free_link);
        shuf__allocation_free_if_unmapped(allocation);
        if (whole_round)
            break;
    }
    if (TAILQ_EMPTY(&allocations->pending_free))
        uv_timer_stop(&allocations->sweep);
}

void shuf__allocations_init(struct shuf__allocations *allocations, uv_loop_t *loop)
{
    LIST_INIT(&allocations->list);
    TAILQ_INIT(&allocations->pending_free);
    uv_timer_init(loop, &allocations->sweep);
    allocations->sweep.data = allocations;
}

/* Host memory may be freed while it is mapped: the mappings stay. An exporter must not free device
 * memory that an importer uses, but it may exit, which the daemon does next. */
void shuf__allocations_abandon(struct shuf__allocations *allocations)
{
    struct shuf__allocation *allocation;
    uv_timer_stop(&allocations->sweep);
    while ((allocation = TAILQ_FIRST(&allocations->pending_free)) != NULL) {
        if (allocation->kind == SHUF__MEMORY_MEMFD) {
            free_now(allocation);
            continue;
        }
        unlink_allocation(allocation);
        free(allocation);
    }
}
