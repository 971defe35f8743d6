/* SPDX-License-Identifier: MIT
 *
 * See allocations.h.
 */
#include "allocations.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Ids ---- */

#define IDS (UINT64_C(1) << 53) /* many readers of JSON store integers exactly only below this */

void shuf__ids_init(struct shuf__ids *ids)
{
    shuf_key key = {{0}};
    if (getentropy(&key, sizeof key) != 0)
        key.word[0] = (uint64_t)(uintptr_t)ids; /* the ids still differ, but may be guessed */
    ids->last = 0;
    ids->permutation = shuf_philox24_make_keyed(IDS, key, 0);
}

uint64_t shuf__ids_of(const struct shuf__ids *ids, uint64_t number)
{
    return shuf_philox24_forward(&ids->permutation, number);
}

uint64_t shuf__ids_next(struct shuf__ids *ids)
{
    const uint64_t id = shuf__ids_of(ids, ++ids->last);
    return id != 0 ? id : shuf__ids_next(ids);
}

uint64_t shuf__ids_number(const struct shuf__ids *ids, uint64_t id)
{
    return id == 0 || id >= IDS ? id : shuf_philox24_inverse(&ids->permutation, id);
}

/* ---- Sizes ---- */

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

/* A block for a result below 2 MiB in host memory has whole pages. All other blocks have whole
 * units of 2 MiB: those of a device, of large results, and of workspaces, which use huge pages. */
static uint64_t unit_of(enum shuf__memory kind, uint64_t bytes)
{
    const bool is_small = kind == SHUF__MEMORY_MEMFD && bytes < SHUF__BLOCK_UNIT;
    return is_small ? (uint64_t)sysconf(_SC_PAGESIZE) : SHUF__BLOCK_UNIT;
}

uint64_t shuf__allocations_least_size(enum shuf__memory kind, uint64_t bytes)
{
    return round_up(bytes, unit_of(kind, bytes));
}

/* Rounds up to one of eight sizes between two powers of two. */
uint64_t shuf__allocations_size(const struct shuf__allocations *allocations, enum shuf__memory kind,
                                uint64_t bytes)
{
    uint64_t step = unit_of(kind, bytes);
    while (step <= bytes / 16)
        step *= 2;
    uint64_t rounded = round_up(bytes, step);
    return rounded <= allocations->budgets[shuf__side_of(kind)].limit
               ? rounded
               : shuf__allocations_least_size(kind, bytes);
}

/* ---- Budgets ---- */

enum { RESERVE = 16 }; /* 1/16 of the memory is left to other programs */

enum shuf__side shuf__side_of(enum shuf__memory kind)
{
    return shuf__memory_is_host(kind) ? SHUF__SIDE_HOST : SHUF__SIDE_DEVICE;
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

/* Asks the kernel for the committed bytes of a buffer. They can also become fewer, because a client
 * can punch holes into its buffer. */
static void measure_committed(struct shuf__allocation *allocation)
{
    const uint64_t committed = ops_of(allocation)->committed(&allocation->block);
    set_committed(allocation, committed < allocation->bytes ? committed : allocation->bytes);
}

/* Updates the committed bytes of the buffers. Clients may have written to them since the last call,
 * and the system no longer counts the written bytes as available. */
static void measure_buffers(struct shuf__allocations *allocations, enum shuf__memory kind)
{
    struct shuf__allocation *allocation;
    if (allocations->buffers == 0 || !shuf__memory_is_host(kind) ||
        shuf__reading_is_fresh(&allocations->buffers_reading))
        return;
    shuf__reading_begin(&allocations->buffers_reading);
    LIST_FOREACH (allocation, &allocations->list, link)
        if (allocation->client_writable)
            measure_committed(allocation);
    shuf__reading_end(&allocations->buffers_reading);
}

/* An amount in bytes. Daemons that use the same memory divide it. */
static uint64_t bytes_of(const struct shuf__budget *budget, struct shuf__amount amount,
                         uint64_t total)
{
    return shuf__amount_bytes(amount, total / budget->sharers);
}

/* The same, but not more than the limit of all results. */
static uint64_t limited_bytes_of(const struct shuf__budget *budget, struct shuf__amount amount,
                                 uint64_t total)
{
    const uint64_t bytes = bytes_of(budget, amount, total);
    return bytes < budget->max_limit ? bytes : budget->max_limit;
}

uint64_t shuf__budget_usable(const struct shuf__budget *budget)
{
    return budget->total - budget->total / RESERVE;
}

shuf_status shuf__allocations_measure(struct shuf__allocations *allocations, enum shuf__memory kind,
                                      struct shuf__error *error)
{
    struct shuf__budget *budget = &allocations->budgets[shuf__side_of(kind)];
    struct shuf__backend *backend = shuf__engine_backend(allocations->engine);
    uint64_t available, total;
    measure_buffers(allocations, kind);
    shuf__reading_begin(&budget->reading);
    if (backend->ops->memory(backend, kind, &available, &total, error))
        return error->status;
    shuf__reading_end(&budget->reading);
    budget->available = available;
    budget->total = total;
    uint64_t ours = budget->used - budget->uncommitted + budget->releasing,
             reserve = total - shuf__budget_usable(budget),
             could_be_ours = ours + (available > reserve ? available - reserve : 0);
    budget->max_limit = bytes_of(budget, budget->configured, total);
    budget->idle_limit = limited_bytes_of(budget, budget->configured_idle, total);
    budget->warm_size = limited_bytes_of(budget, budget->configured_warm, total) /
                        SHUF__BLOCK_UNIT * SHUF__BLOCK_UNIT;
    budget->limit = could_be_ours < budget->max_limit ? could_be_ours : budget->max_limit;
    return SHUF_OK;
}

void shuf__allocations_refresh(struct shuf__allocations *allocations, enum shuf__memory kind)
{
    struct shuf__error ignored;
    if (!shuf__reading_is_fresh(&allocations->budgets[shuf__side_of(kind)].reading))
        shuf__allocations_measure(allocations, kind, &ignored);
}

/* ---- One allocation ---- */

static void charge(struct shuf__allocation *allocation)
{
    struct shuf__account *account = allocation->account;
    if (!account)
        return;
    account->blocks++;
    account->bytes[shuf__side_of(allocation->kind)] += allocation->bytes;
}

static void end_charge(const struct shuf__allocation *allocation)
{
    struct shuf__account *account = allocation->account;
    const enum shuf__side side = shuf__side_of(allocation->kind);
    if (!account)
        return;
    account->blocks--;
    account->bytes[side] -= allocation->bytes;
    account->pending_free[side] -= allocation->pending_free ? allocation->bytes : 0;
}

static void free_allocation(struct shuf__allocation *allocation)
{
    if (allocation->account)
        shuf__account_unref(allocation->account);
    free(allocation);
}

bool shuf__allocation_give(struct shuf__allocation *allocation, uint32_t uid)
{
    allocation->account = shuf__account_of(&allocation->all->accounts, uid);
    if (!allocation->account)
        return false;
    allocation->uid = uid;
    charge(allocation);
    return true;
}

static void insert(struct shuf__allocation *allocation)
{
    struct shuf__allocations *all = allocation->all;
    struct shuf__budget *budget = &all->budgets[shuf__side_of(allocation->kind)];
    charge(allocation);
    LIST_INSERT_HEAD(&all->list, allocation, link);
    all->count++;
    all->buffers += allocation->buffer;
    budget->used += allocation->bytes;
    budget->uncommitted += allocation->bytes - allocation->committed;
}

struct shuf__allocation *shuf__allocation_make(struct shuf__allocations *allocations, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size, bool buffer)
{
    struct shuf__allocation *allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return NULL;
    if (uid != SHUF__UID_DAEMON &&
        !(allocation->account = shuf__account_of(&allocations->accounts, uid))) {
        free(allocation);
        return NULL;
    }
    allocation->all = allocations;
    allocation->id = shuf__ids_next(&allocations->ids);
    allocation->number = allocations->ids.last;
    allocation->bytes = size;
    allocation->uid = uid;
    allocation->kind = kind;
    allocation->buffer = buffer;
    allocation->block.fd = -1;
    LIST_INIT(&allocation->mappings);
    insert(allocation);
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

bool shuf__allocation_may_wait_for_client(const struct shuf__allocation *allocation)
{
    return allocation->kind == SHUF__MEMORY_MEMFD && allocation->client_writable;
}

int shuf__allocation_export(const struct shuf__allocation *allocation)
{
    return ops_of(allocation)->export_block(&allocation->block);
}

/* The kernel knows the mappings of host memory, and is asked only about blocks that a process got.
 * For device memory, the daemon relies on the reports and the deaths of client processes. A freed
 * block counts as mapped while a process keeps its memory (inode_watch.h). */
bool shuf__allocation_is_unmapped(const struct shuf__allocation *allocation)
{
    if (!allocation->block.memory)
        return allocation->watch.id == 0;
    if (allocation->block.kind == SHUF__MEMORY_MEMFD && !allocation->was_shared)
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
    return (struct shuf__allocation *)((char *)job - offsetof(struct shuf__allocation, free_job));
}

static void run_free(struct shuf__engine_job *job, struct shuf__backend *backend)
{
    struct shuf__allocation *allocation = allocation_of(job);
    if (allocation->block.memory)
        backend->ops->free(backend, &allocation->block);
}

static void set_unconfirmed(struct shuf__allocation *allocation, bool unconfirmed)
{
    const enum shuf__side side = shuf__side_of(allocation->kind);
    const uint64_t bytes = unconfirmed ? allocation->bytes : -allocation->bytes;
    allocation->unconfirmed = unconfirmed;
    allocation->all->budgets[side].unconfirmed += bytes;
    if (allocation->account)
        allocation->account->unconfirmed[side] += bytes;
}

/* Charges the user again for memory that a process has kept. */
static void charge_again(struct shuf__allocation *allocation)
{
    allocation->client_writable = false;
    insert(allocation);
    shuf__allocation_drop_later(allocation);
}

/* Call after the block is freed. A process may have kept its memory. Then the user is charged
 * again, until the memory is gone. */
static void forget(struct shuf__allocation *allocation)
{
    struct shuf__allocations *all = allocation->all;
    const bool was_unconfirmed = allocation->unconfirmed,
               was_full = all->count + all->freeing >= all->max_count;
    all->freeing--;
    all->budgets[shuf__side_of(allocation->kind)].releasing -= allocation->committed;
    if (was_unconfirmed)
        set_unconfirmed(allocation, false);
    if (allocation->watch.id > 0)
        shuf__inode_watches_update(&all->watches);
    if (allocation->watch.id > 0 && !all->abandoned) {
        charge_again(allocation);
    } else {
        shuf__inode_watch_end(&all->watches, &allocation->watch);
        free_allocation(allocation);
    }
    if (was_unconfirmed || was_full)
        shuf__engines_begin_again(all->engine);
}

static void end_free(struct shuf__engine_job *job)
{
    forget(allocation_of(job));
}

static void run_free_on_worker(uv_work_t *work)
{
    struct shuf__allocation *allocation = work->data;
    ops_of(allocation)->free(shuf__engine_backend(allocation->all->engine), &allocation->block);
}

static void end_free_on_worker(uv_work_t *work, int status)
{
    (void)status; /* nobody cancels it */
    struct shuf__allocation *allocation = work->data;
    struct shuf__allocations *all = allocation->all;
    forget(allocation);
    if (--all->worker_blocks == 0)
        all->workers_done(all);
}

static void unlink_allocation(struct shuf__allocation *allocation)
{
    end_charge(allocation);
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

/* The budget gets the bytes back at once, before the memory is freed. */
void shuf__allocation_end_charge(struct shuf__allocation *allocation)
{
    struct shuf__budget *budget = &allocation->all->budgets[shuf__side_of(allocation->kind)];
    if (allocation->was_shared && allocation->block.memory)
        shuf__inode_watch_begin(&allocation->all->watches, &allocation->watch,
                                allocation->block.fd);
    if (allocation->block.memory && allocation->watch.id > 0)
        set_unconfirmed(allocation, true);
    unlink_allocation(allocation);
    budget->used -= allocation->bytes;
    budget->uncommitted -= allocation->bytes - allocation->committed;
    budget->releasing += allocation->committed;
    allocation->all->freeing++;
}

/* The lane of urgent jobs frees the block. If a job allocates before that and finds no memory, it
 * is queued again. Host memory need not wait for the GPU. */
static void submit_free(struct shuf__allocation *allocation)
{
    struct shuf__engine *engine = allocation->all->engine;
    const bool on_host = shuf__memory_is_host(allocation->kind);
    shuf__allocation_end_charge(allocation);
    allocation->free_job.name = "shufd: free";
    allocation->free_job.run = run_free;
    allocation->free_job.done = end_free;
    shuf__engine_submit_urgent(on_host ? shuf__engines_host(engine) : engine,
                               &allocation->free_job);
}

enum { SWEEP_MS = 20 }; /* between two sweeps of the pending allocations */

static void on_sweep(uv_timer_t *timer);
static void on_idle(uv_idle_t *idle);

void shuf__allocation_drop_later(struct shuf__allocation *allocation)
{
    struct shuf__allocations *all = allocation->all;
    allocation->pending_free = true;
    if (allocation->account)
        allocation->account->pending_free[shuf__side_of(allocation->kind)] += allocation->bytes;
    all->pending_free_count++;
    TAILQ_INSERT_TAIL(&all->pending_free, allocation, pending_free_link);
    if (!uv_is_active((uv_handle_t *)&all->sweep))
        uv_timer_start(&all->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

void shuf__allocation_drop(struct shuf__allocation *allocation)
{
    if (shuf__allocation_is_unmapped(allocation))
        submit_free(allocation);
    else
        shuf__allocation_drop_later(allocation);
}

void shuf__allocation_free_on_worker(struct shuf__allocation *allocation)
{
    struct shuf__allocations *all = allocation->all;
    assert(shuf__memory_is_host(allocation->kind));
    all->worker_blocks++;
    allocation->free_work.data = allocation;
    uv_queue_work(all->loop, &allocation->free_work, run_free_on_worker, end_free_on_worker);
}

void shuf__allocation_drop_on_worker(struct shuf__allocation *allocation)
{
    shuf__allocation_end_charge(allocation);
    shuf__allocation_free_on_worker(allocation);
}

/* Other blocks may be mapped for long, so the next sweep checks this one first. */
void shuf__allocation_free_soon(struct shuf__allocation *allocation)
{
    struct shuf__allocations *all = allocation->all;
    if (!allocation->pending_free)
        return;
    TAILQ_REMOVE(&all->pending_free, allocation, pending_free_link);
    TAILQ_INSERT_HEAD(&all->pending_free, allocation, pending_free_link);
    uv_idle_start(&all->sweep_on, on_idle);
}

void shuf__allocation_free_if_unmapped(struct shuf__allocation *allocation)
{
    if (allocation->pending_free && shuf__allocation_is_unmapped(allocation))
        submit_free(allocation);
}

/* ---- All of them ---- */

enum {
    SWEEP_COUNT = 256, /* most allocations that a sweep checks */
    FEW_COUNT = 16,    /* most allocations that a request for memory checks */
    /* To free a block takes some 10 us. A step of the loop frees few, and the steps go on while
     * they free blocks. */
    STEP_FREES = 32,
};

/* Checks the first pending allocations, and puts those that are still mapped last. Returns the
 * number of freed ones. */
static unsigned sweep(struct shuf__allocations *allocations, unsigned most, unsigned frees)
{
    const uint64_t before = allocations->pending_free_count;
    struct shuf__allocation *allocation;
    shuf__inode_watches_update(&allocations->watches);
    for (uint64_t i = 0; i < most && i < before && before - allocations->pending_free_count < frees;
         i++) {
        allocation = TAILQ_FIRST(&allocations->pending_free);
        TAILQ_REMOVE(&allocations->pending_free, allocation, pending_free_link);
        TAILQ_INSERT_TAIL(&allocations->pending_free, allocation, pending_free_link);
        shuf__allocation_free_if_unmapped(allocation);
    }
    if (TAILQ_EMPTY(&allocations->pending_free))
        uv_timer_stop(&allocations->sweep);
    return (unsigned)(before - allocations->pending_free_count);
}

static void on_idle(uv_idle_t *idle)
{
    if (sweep(idle->data, SWEEP_COUNT, STEP_FREES) == 0)
        uv_idle_stop(idle);
}

static void on_sweep(uv_timer_t *timer)
{
    struct shuf__allocations *allocations = timer->data;
    if (sweep(allocations, SWEEP_COUNT, STEP_FREES) > 0)
        uv_idle_start(&allocations->sweep_on, on_idle);
}

void shuf__allocations_sweep_now(struct shuf__allocations *allocations)
{
    sweep(allocations, FEW_COUNT, FEW_COUNT);
}

void shuf__allocations_init(struct shuf__allocations *allocations, uv_loop_t *loop)
{
    shuf__accounts_init(&allocations->accounts);
    LIST_INIT(&allocations->list);
    TAILQ_INIT(&allocations->pending_free);
    allocations->loop = loop;
    shuf__ids_init(&allocations->ids);
    shuf__inode_watches_open(&allocations->watches);
    uv_timer_init(loop, &allocations->sweep);
    allocations->sweep.data = allocations;
    uv_idle_init(loop, &allocations->sweep_on);
    allocations->sweep_on.data = allocations;
}

void shuf__allocations_limit_count(struct shuf__allocations *allocations, uint64_t max_count)
{
    allocations->max_count = max_count;
    shuf__engines_begin_again(allocations->engine);
}

/* Host memory may be freed while a process has it mapped, because the mapping stays valid. Device
 * memory must not be freed while another process uses it. But the daemon may exit, and it does so
 * next. */
void shuf__allocations_abandon(struct shuf__allocations *allocations)
{
    struct shuf__allocation *allocation;
    uv_timer_stop(&allocations->sweep);
    uv_idle_stop(&allocations->sweep_on);
    allocations->abandoned = true;
    while ((allocation = TAILQ_FIRST(&allocations->pending_free)) != NULL) {
        if (allocation->kind == SHUF__MEMORY_MEMFD) {
            submit_free(allocation);
            continue;
        }
        unlink_allocation(allocation);
        free_allocation(allocation);
    }
}
