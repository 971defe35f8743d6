/* SPDX-License-Identifier: MIT
 *
 * See cells.h.
 */
#include "cells.h"

#include "holder.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

enum {
    RESERVE = 16,  /* one part in so many of a device's memory is left to others */
    LOOK_MS = 20,  /* between two looks at what lingers, */
    LOOK_AT = 256, /* each at so many of them at most */
};

/* ---- budgets ---- */

enum shuf__pool shuf__pool_of(enum shuf__memory kind)
{
    return shuf__memory_is_host(kind) ? SHUF__POOL_HOST : SHUF__POOL_DEVICE;
}

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static const struct shuf__budget *budget_of(const struct shuf__cells *cells, enum shuf__memory kind)
{
    return &cells->budgets[shuf__pool_of(kind)];
}

/* What clients have written to since is no longer counted as available. */
static void look_at_buffers(struct shuf__cells *cells, enum shuf__memory kind)
{
    struct shuf__cell *cell;
    if (cells->buffers > 0 && shuf__memory_is_host(kind))
        LIST_FOREACH (cell, &cells->list, link)
            if (cell->open)
                shuf__cell_open(cell);
}

shuf_status shuf__cells_measure(struct shuf__cells *cells, enum shuf__memory kind,
                                struct shuf__error *error)
{
    struct shuf__budget *budget = &cells->budgets[shuf__pool_of(kind)];
    struct shuf__backend *backend = shuf__engine_backend(cells->engine);
    uint64_t available, total;
    budget->limit = budget->most = budget->configured;
    if (budget->configured != 0)
        return SHUF_OK;
    look_at_buffers(cells, kind);
    if (backend->ops->memory(backend, kind, &available, &total, error))
        return error->status;
    uint64_t ours = budget->used - budget->unbacked + budget->leaving, reserve = total / RESERVE;
    budget->most = total - reserve;
    budget->limit = ours + (available > reserve ? available - reserve : 0);
    return SHUF_OK;
}

uint64_t shuf__cells_least_size(uint64_t bytes)
{
    return round_up(bytes, SHUF__BLOCK_UNIT);
}

/* Eight sizes to the doubling. */
uint64_t shuf__cells_size(const struct shuf__cells *cells, enum shuf__memory kind, uint64_t bytes)
{
    uint64_t step = SHUF__BLOCK_UNIT;
    while (step <= bytes / 16)
        step *= 2;
    uint64_t rounded = round_up(bytes, step);
    return rounded <= budget_of(cells, kind)->limit ? rounded : shuf__cells_least_size(bytes);
}

bool shuf__cells_fit(const struct shuf__cells *cells, enum shuf__memory kind, uint64_t size)
{
    const struct shuf__budget *budget = budget_of(cells, kind);
    return cells->count < cells->most && size <= budget->limit &&
           budget->used <= budget->limit - size;
}

static const char *name_of(enum shuf__memory kind)
{
    return shuf__pool_of(kind) == SHUF__POOL_HOST ? "host_memory" : "device_memory";
}

static shuf_status too_large(uint64_t size, uint64_t most, enum shuf__memory kind,
                             struct shuf__error *error)
{
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "block of %" PRIu64 " bytes: expected at most %" PRIu64
                      ", all that results may hold (%s)",
                      size, most, name_of(kind));
}

shuf_status shuf__cells_could_fit(const struct shuf__cells *cells, enum shuf__memory kind,
                                  uint64_t bytes, uint64_t beside, struct shuf__error *error)
{
    uint64_t size = shuf__cells_least_size(bytes), most = budget_of(cells, kind)->most;
    uint64_t taken = shuf__cells_least_size(beside);
    if (size > most)
        return too_large(size, most, kind, error);
    if (taken <= most - size)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "block of %" PRIu64 " bytes beside %" PRIu64
                      " that its input and the work on it take: expected at most %" PRIu64
                      " together, all that results may hold (%s)",
                      size, taken, most, name_of(kind));
}

/* What fits but for the results of others is worth another try, and nothing else is. */
shuf_status shuf__cells_refuse(const struct shuf__cells *cells, enum shuf__memory kind,
                               uint64_t size, struct shuf__error *error)
{
    const struct shuf__budget *budget = budget_of(cells, kind);
    if (size > budget->limit)
        return too_large(size, budget->limit, kind, error);
    if (cells->count >= cells->most)
        return shuf__fail(error, SHUF_BUSY,
                          "blocks %" PRIu64 ": the most that the limit of open files allows; try "
                          "again",
                          cells->count);
    return shuf__fail(error, SHUF_BUSY,
                      "block of %" PRIu64 " bytes: %" PRIu64 " of %" PRIu64
                      " are in use by other results (%s); try again",
                      size, budget->used, budget->limit, name_of(kind));
}

/* ---- one cell ---- */

struct shuf__cell *shuf__cell_make(struct shuf__cells *cells, uint32_t uid, enum shuf__memory kind,
                                   uint64_t size, bool buffer)
{
    struct shuf__cell *cell = calloc(1, sizeof *cell);
    if (!cell)
        return NULL;
    cell->all = cells;
    cell->id = ++cells->last_id;
    cell->bytes = size;
    cell->uid = uid;
    cell->kind = kind;
    cell->buffer = buffer;
    cell->block.fd = -1;
    LIST_INIT(&cell->exposures);
    LIST_INSERT_HEAD(&cells->list, cell, link);
    cells->count++;
    cells->buffers += buffer;
    cells->budgets[shuf__pool_of(kind)].used += size;
    cells->budgets[shuf__pool_of(kind)].unbacked += size;
    return cell;
}

static void set_backed(struct shuf__cell *cell, uint64_t bytes)
{
    cell->all->budgets[shuf__pool_of(cell->kind)].unbacked += cell->backed - bytes;
    cell->backed = bytes;
}

void shuf__cell_back(struct shuf__cell *cell, uint64_t bytes)
{
    if (bytes > cell->backed)
        set_backed(cell, bytes);
}

static const struct shuf__backend_ops *ops_of(const struct shuf__cell *cell)
{
    return shuf__engine_backend(cell->all->engine)->ops;
}

/* It may be less than before: whoever writes to it can give pages back, too. */
void shuf__cell_open(struct shuf__cell *cell)
{
    cell->open = true;
    const uint64_t backed = ops_of(cell)->committed(&cell->block);
    set_backed(cell, backed < cell->bytes ? backed : cell->bytes);
}

/* Of host memory the kernel knows; of device memory those know who were given it. */
bool shuf__cell_is_unmapped(const struct shuf__cell *cell)
{
    if (!cell->block.memory)
        return true;
    const enum shuf__mapped mapped = ops_of(cell)->mapped(&cell->block);
    return mapped == SHUF__UNMAPPED ||
           (mapped == SHUF__MAPPED_UNKNOWN && LIST_EMPTY(&cell->exposures));
}

bool shuf__cell_is_rewritable(struct shuf__cell *cell)
{
    if (cell->strayed && shuf__cell_is_unmapped(cell))
        cell->strayed = false;
    return !cell->strayed && cell->ghosts == 0;
}

static struct shuf__cell *cell_of(struct shuf__task *task)
{
    return (struct shuf__cell *)((char *)task - offsetof(struct shuf__cell, release));
}

static void run_release(struct shuf__task *task, struct shuf__backend *backend)
{
    struct shuf__cell *cell = cell_of(task);
    if (cell->block.memory)
        backend->ops->free(backend, &cell->block);
}

static void end_release(struct shuf__task *task)
{
    struct shuf__cell *cell = cell_of(task);
    cell->all->budgets[shuf__pool_of(cell->kind)].leaving -= cell->backed;
    free(cell);
}

static void forget(struct shuf__cell *cell)
{
    if (cell->lingering) {
        TAILQ_REMOVE(&cell->all->lingering, cell, lingering_link);
        cell->all->lingerers--;
    }
    LIST_REMOVE(cell, link);
    cell->all->count--;
    cell->all->buffers -= cell->buffer;
    cell->lingering = false;
    shuf__holder_forget(cell);
}

/* The budget has it back at once, since the engine frees it before it allocates what comes next. */
static void give_back(struct shuf__cell *cell)
{
    struct shuf__budget *budget = &cell->all->budgets[shuf__pool_of(cell->kind)];
    forget(cell);
    budget->used -= cell->bytes;
    budget->unbacked -= cell->bytes - cell->backed;
    budget->leaving += cell->backed;
    cell->release.run = run_release;
    cell->release.done = end_release;
    shuf__engine_follow_up(cell->all->engine, &cell->release);
}

static void on_look(uv_timer_t *timer)
{
    shuf__cells_look(timer->data);
}

static void linger(struct shuf__cell *cell)
{
    struct shuf__cells *cells = cell->all;
    cell->lingering = true;
    cells->lingerers++;
    TAILQ_INSERT_TAIL(&cells->lingering, cell, lingering_link);
    if (!uv_is_active((uv_handle_t *)&cells->look))
        uv_timer_start(&cells->look, on_look, LOOK_MS, LOOK_MS);
}

void shuf__cell_drop(struct shuf__cell *cell)
{
    if (shuf__cell_is_unmapped(cell))
        give_back(cell);
    else
        linger(cell);
}

void shuf__cell_was_unmapped(struct shuf__cell *cell)
{
    if (cell->lingering && shuf__cell_is_unmapped(cell))
        give_back(cell);
}

/* ---- all of them ---- */

void shuf__cells_look(struct shuf__cells *cells)
{
    struct shuf__cell *cell, *last = TAILQ_LAST(&cells->lingering, shuf__lingering);
    for (int i = 0; i < LOOK_AT && (cell = TAILQ_FIRST(&cells->lingering)) != NULL; i++) {
        bool whole_round = cell == last;
        TAILQ_REMOVE(&cells->lingering, cell, lingering_link);
        TAILQ_INSERT_TAIL(&cells->lingering, cell, lingering_link);
        shuf__cell_was_unmapped(cell);
        if (whole_round)
            break;
    }
    if (TAILQ_EMPTY(&cells->lingering))
        uv_timer_stop(&cells->look);
}

void shuf__cells_init(struct shuf__cells *cells, uv_loop_t *loop)
{
    LIST_INIT(&cells->list);
    TAILQ_INIT(&cells->lingering);
    uv_timer_init(loop, &cells->look);
    cells->look.data = cells;
}

/* Host memory that others have mapped may be freed: theirs stays. Of device memory an exporter must
 * not free what an importer uses, but it may die, which comes next. */
void shuf__cells_abandon(struct shuf__cells *cells)
{
    struct shuf__cell *cell;
    uv_timer_stop(&cells->look);
    while ((cell = TAILQ_FIRST(&cells->lingering)) != NULL) {
        if (cell->kind == SHUF__MEMORY_MEMFD) {
            give_back(cell);
            continue;
        }
        forget(cell);
        free(cell);
    }
}
