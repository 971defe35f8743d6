/* SPDX-License-Identifier: MIT
 *
 * See warm.h. A worker thread of libuv touches host memory step by step. Between two steps the
 * loop can give up the block. Device memory need not be touched, so one job of the engine allocates
 * it.
 */
#include "warm.h"

#include "room.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

enum { CHECK_MS = 1000, STEP = 64 << 20 };

static struct shuf__budget *budget_of(const struct shuf__warm_block *b)
{
    return &b->warm->pool->allocations->budgets[b->side];
}

/* ---- The end of making a block ---- */

static void give_up(struct shuf__warm_block *b)
{
    struct shuf__allocation *allocation = b->allocation;
    b->allocation = NULL;
    if (b->abandoned)
        shuf__allocation_free_on_worker(allocation);
    else
        shuf__allocation_drop(allocation);
}

static void finish(struct shuf__warm_block *b)
{
    struct shuf__allocation *allocation = b->allocation;
    const bool is_right_size = allocation->bytes == budget_of(b)->warm_size;
    if (b->abandoned || b->warm->stopped || b->error.status || !is_right_size) {
        give_up(b);
        return;
    }
    b->allocation = NULL;
    shuf__pool_add_warm(b->warm->pool, allocation);
    b->warm->ready(b->warm, allocation);
}

/* ---- Host memory ---- */

static uint64_t step_of(const struct shuf__warm_block *b)
{
    const uint64_t left = b->allocation->bytes - b->touched;
    return left < STEP ? left : STEP;
}

/* Kernels before Linux 5.14 do not know the advice (EINVAL), and need a write to each page. The
 * write of 0 changes nothing, because nobody has written to the memory yet. After another error a
 * write could end the daemon by SIGBUS. */
static void touch_step(uv_work_t *work)
{
    enum { PAGE = 4096 };
    struct shuf__warm_block *b = work->data;
    volatile char *memory = (char *)b->allocation->block.memory + b->touched;
    const uint64_t bytes = step_of(b);
    if (madvise((void *)memory, bytes, MADV_POPULATE_WRITE) == 0)
        return;
    if (errno != EINVAL) {
        shuf__fail(&b->error, SHUF_NO_MEMORY, "host_warm: %s", strerror(errno));
        return;
    }
    for (uint64_t i = 0; i < bytes; i += PAGE)
        memory[i] = 0;
}

static void touch_next(struct shuf__warm_block *b);

/* `worker_blocks` keeps the daemon from ending while a thread writes to a block. */
static void end_step(uv_work_t *work, int status)
{
    (void)status; /* nobody cancels it */
    struct shuf__warm_block *b = work->data;
    struct shuf__allocations *all = b->warm->pool->allocations;
    b->touched += step_of(b);
    if (!b->abandoned)
        shuf__allocation_commit(b->allocation, b->touched);
    if (!b->abandoned && !b->warm->stopped && !b->error.status &&
        b->touched < b->allocation->bytes) {
        touch_next(b);
        return;
    }
    finish(b);
    if (--all->worker_blocks == 0)
        all->workers_done(all);
}

static void touch_next(struct shuf__warm_block *b)
{
    uv_queue_work(b->warm->timer.loop, &b->touch, touch_step, end_step);
}

static void make_host(struct shuf__warm_block *b)
{
    struct shuf__allocation *allocation = b->allocation;
    struct shuf__backend *backend = shuf__engine_backend(allocation->all->engine);
    if (backend->ops->alloc(backend, allocation->kind, allocation->bytes, &allocation->block,
                            &b->error)) {
        give_up(b);
        return;
    }
    b->warm->pool->allocations->worker_blocks++;
    touch_next(b);
}

/* Ends the charge at once for a request that needs the room. The memory is freed later, when the
 * thread has ended its step. */
static bool abandon(void *context, enum shuf__side side)
{
    struct shuf__warm *warm = context;
    struct shuf__warm_block *b = &warm->blocks[side];
    if (side != SHUF__SIDE_HOST || !b->allocation || b->abandoned)
        return false;
    b->abandoned = true;
    shuf__allocation_end_charge(b->allocation);
    return true;
}

/* ---- Device memory ---- */

static struct shuf__warm_block *block_of(struct shuf__engine_job *job)
{
    return (struct shuf__warm_block *)((char *)job - offsetof(struct shuf__warm_block, allocate));
}

static void allocate_device(struct shuf__engine_job *job, struct shuf__backend *backend)
{
    struct shuf__warm_block *b = block_of(job);
    struct shuf__allocation *allocation = b->allocation;
    backend->ops->alloc(backend, allocation->kind, allocation->bytes, &allocation->block,
                        &b->error);
}

static void end_device(struct shuf__engine_job *job)
{
    struct shuf__warm_block *b = block_of(job);
    if (!b->allocation->block.memory)
        shuf__fail(&b->error, SHUF_NO_MEMORY, "device_warm: no memory");
    else
        shuf__allocation_commit(b->allocation, b->allocation->bytes);
    finish(b);
}

static void make_device(struct shuf__warm_block *b)
{
    struct shuf__error busy;
    b->allocate = (struct shuf__engine_job){.uid = SHUF__UID_DAEMON,
                                            .name = "shufd: device_warm",
                                            .run = allocate_device,
                                            .done = end_device};
    if (shuf__engine_submit(b->warm->pool->allocations->engine, &b->allocate, &busy))
        give_up(b);
}

/* ---- When ---- */

static enum shuf__memory kind_of(const struct shuf__warm_block *b)
{
    return b->side == SHUF__SIDE_HOST
               ? SHUF__MEMORY_MEMFD
               : shuf__engine_backend(b->warm->pool->allocations->engine)->ops->own;
}

/* Whether a block of the warm size exists, used by a result or idle. */
static bool has_block(const struct shuf__warm_block *b)
{
    const struct shuf__allocation *allocation;
    LIST_FOREACH (allocation, &b->warm->pool->allocations->list, link)
        if (shuf__side_of(allocation->kind) == b->side && !allocation->pending_free &&
            allocation->bytes == budget_of(b)->warm_size)
            return true;
    return false;
}

static bool is_missing(const struct shuf__warm_block *b)
{
    struct shuf__error ignored;
    const struct shuf__warm *warm = b->warm;
    struct shuf__allocations *all = warm->pool->allocations;
    const enum shuf__memory kind = kind_of(b);
    const struct shuf__need need = {SHUF__UID_DAEMON, kind, budget_of(b)->warm_size};
    return budget_of(b)->warm_size > 0 && !b->allocation && shuf__side_of(kind) == b->side &&
           !has_block(b) && shuf__allocations_measure(all, kind, &ignored) == SHUF_OK &&
           shuf__room_has(all, &need, NULL) &&
           shuf__shortage_allows(warm->shortage, b->side, budget_of(b)->warm_size);
}

static void make_block(struct shuf__warm_block *b)
{
    struct shuf__allocations *all = b->warm->pool->allocations;
    b->touched = 0;
    b->abandoned = false;
    b->error.status = SHUF_OK;
    b->allocation =
        shuf__allocation_make(all, SHUF__UID_DAEMON, kind_of(b), budget_of(b)->warm_size, false);
    if (b->allocation)
        (b->side == SHUF__SIDE_HOST ? make_host : make_device)(b);
}

static void on_check(uv_timer_t *timer)
{
    struct shuf__warm *warm = timer->data;
    for (int side = 0; side < SHUF__SIDES; side++)
        if (is_missing(&warm->blocks[side]))
            make_block(&warm->blocks[side]);
}

static void drop_other_sizes(struct shuf__warm *warm)
{
    for (int side = 0; side < SHUF__SIDES; side++) {
        const struct shuf__allocation *allocation = warm->pool->warm[side];
        if (allocation && allocation->bytes != budget_of(&warm->blocks[side])->warm_size)
            shuf__pool_drop_warm(warm->pool, (enum shuf__side)side);
    }
}

void shuf__warm_start(struct shuf__warm *warm)
{
    drop_other_sizes(warm);
    if (budget_of(&warm->blocks[SHUF__SIDE_HOST])->warm_size > 0 ||
        budget_of(&warm->blocks[SHUF__SIDE_DEVICE])->warm_size > 0)
        uv_timer_start(&warm->timer, on_check, 0, CHECK_MS);
    else
        uv_timer_stop(&warm->timer);
}

void shuf__warm_stop(struct shuf__warm *warm)
{
    warm->stopped = true;
    uv_timer_stop(&warm->timer);
}

void shuf__warm_init(struct shuf__warm *warm, uv_loop_t *loop, struct shuf__pool *pool,
                     const struct shuf__shortage *shortage)
{
    warm->pool = pool;
    warm->shortage = shortage;
    pool->abandon_warm = abandon;
    pool->warm_context = warm;
    uv_timer_init(loop, &warm->timer);
    warm->timer.data = warm;
    for (int side = 0; side < SHUF__SIDES; side++) {
        struct shuf__warm_block *b = &warm->blocks[side];
        *b = (struct shuf__warm_block){.warm = warm, .side = (enum shuf__side)side};
        b->touch.data = b;
    }
}
