/* SPDX-License-Identifier: MIT
 *
 * See results.h.
 */
#include "results.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Idle results of one size that stay before the coldest one's cell serves the next request. Small
 * ones are cheap, and the same few blocks again and again are blocks that clients have mapped; of
 * the largest there is one, as fresh memory costs more than computing. */
enum { KEEP_MOST = 64 };
static const uint64_t keep_bytes = UINT64_C(128) << 20;

/* One user's idle results of one kind and size of cell. */
struct shuf__shelf {
    uint32_t uid, kind;
    uint64_t size;
    unsigned count;
    struct shuf__idle coldest;
    LIST_ENTRY(shuf__shelf) link;
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

struct shuf__result *shuf__results_find(struct shuf__results *results, const struct shuf__key *key)
{
    struct shuf__result *const *found = tfind(key, &results->table, compare);
    return found ? *found : NULL;
}

void shuf__result_hide(struct shuf__result *result)
{
    if (result->found)
        tdelete(result, &result->all->table, compare);
    result->found = false;
}

/* Without memory for the table's node it serves its own request and is found by no other. */
struct shuf__result *shuf__results_make(struct shuf__results *results, const struct shuf__key *key,
                                        uint64_t bytes)
{
    struct shuf__result *result = calloc(1, sizeof *result);
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

static enum shuf__memory kind_of(const struct shuf__result *result)
{
    return result->key.kind;
}

static struct shuf__idle *idle_list(const struct shuf__result *result)
{
    return &result->all->idle[shuf__pool_of(kind_of(result))];
}

static struct shuf__shelf *find_shelf(const struct shuf__result *result, uint64_t size)
{
    struct shuf__shelf *shelf;
    LIST_FOREACH (shelf, &result->all->shelves, link)
        if (shelf->uid == result->key.uid && shelf->kind == result->key.kind && shelf->size == size)
            return shelf;
    return NULL;
}

static struct shuf__shelf *make_shelf(struct shuf__result *result)
{
    struct shuf__shelf *shelf = calloc(1, sizeof *shelf);
    if (!shelf)
        return NULL;
    shelf->uid = result->key.uid;
    shelf->kind = result->key.kind;
    shelf->size = result->cell->bytes;
    TAILQ_INIT(&shelf->coldest);
    LIST_INSERT_HEAD(&result->all->shelves, shelf, link);
    return shelf;
}

/* What nobody can find is only memory for the next: it is the coldest, and no younger than what was
 * before it. */
static void insert_idle(struct shuf__result *result, struct shuf__shelf *shelf)
{
    struct shuf__idle *list = idle_list(result);
    result->idle_since_ms = uv_now(result->all->trim.loop);
    if (result->found) {
        TAILQ_INSERT_TAIL(list, result, coldest);
        TAILQ_INSERT_TAIL(&shelf->coldest, result, in_shelf);
        return;
    }
    if (!TAILQ_EMPTY(list))
        result->idle_since_ms = TAILQ_FIRST(list)->idle_since_ms;
    TAILQ_INSERT_HEAD(list, result, coldest);
    TAILQ_INSERT_HEAD(&shelf->coldest, result, in_shelf);
}

static void become_idle(struct shuf__result *result, struct shuf__shelf *shelf)
{
    struct shuf__results *results = result->all;
    result->shelf = shelf;
    shelf->count++;
    results->idle_bytes += shelf->size;
    insert_idle(result, shelf);
    if (!uv_is_active((uv_handle_t *)&results->trim))
        uv_timer_start(&results->trim, on_trim, results->keep_ms, 0);
}

static void end_idle(struct shuf__result *result)
{
    struct shuf__shelf *shelf = result->shelf;
    TAILQ_REMOVE(idle_list(result), result, coldest);
    TAILQ_REMOVE(&shelf->coldest, result, in_shelf);
    result->shelf = NULL;
    result->all->idle_bytes -= shelf->size;
    if (--shelf->count > 0)
        return;
    LIST_REMOVE(shelf, link);
    free(shelf);
}

/* Its cell, where it has one, is the caller's. */
static void end_result(struct shuf__result *result)
{
    assert(result->refs == 0 && !result->work);
    if (result->shelf)
        end_idle(result);
    shuf__result_end_input(result);
    shuf__result_hide(result);
    free(result);
}

static void give_up(struct shuf__result *result)
{
    struct shuf__cell *cell = result->cell;
    end_result(result);
    if (cell)
        shuf__cell_drop(cell);
}

static void on_trim(uv_timer_t *timer)
{
    struct shuf__results *results = timer->data;
    uint64_t now = uv_now(timer->loop), next = UINT64_MAX;
    for (int pool = 0; pool < SHUF__POOLS; pool++) {
        struct shuf__result *result;
        while ((result = TAILQ_FIRST(&results->idle[pool])) != NULL &&
               result->idle_since_ms + results->keep_ms <= now)
            give_up(result);
        if (result && result->idle_since_ms + results->keep_ms < next)
            next = result->idle_since_ms + results->keep_ms;
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, on_trim, next - now, 0);
}

/* ---- cells ---- */

static bool is_full(const struct shuf__shelf *shelf)
{
    uint64_t keep = keep_bytes / shelf->size;
    return shelf->count > KEEP_MOST || shelf->count > (keep < 1 ? 1 : keep);
}

/* A block that was given to a process which cannot be told is not written to again: what is too
 * many of these goes, or there would be no end to them. */
static struct shuf__result *coldest_in(struct shuf__shelf *shelf)
{
    struct shuf__result *next, *result = TAILQ_FIRST(&shelf->coldest);
    for (; result && !shuf__cell_is_rewritable(result->cell); result = next) {
        next = TAILQ_NEXT(result, in_shelf);
        if (!is_full(shelf)) /* and so the shelf stays, too */
            continue;
        result->all->evicted += result->found;
        give_up(result);
    }
    return result;
}

static void take_over(struct shuf__result *result, struct shuf__result *old)
{
    result->all->evicted += old->found;
    result->cell = old->cell;
    end_result(old);
}

static bool reuse(struct shuf__result *result, uint64_t size, bool only_spare)
{
    struct shuf__shelf *shelf = find_shelf(result, size);
    struct shuf__result *old = shelf ? coldest_in(shelf) : NULL;
    if (!old || (only_spare && old->found && !is_full(shelf)))
        return false;
    take_over(result, old);
    return true;
}

/* A buffer has memory of its own, from its client's first look at it to the last. */
bool shuf__result_reuse_cell(struct shuf__result *result)
{
    return !shuf__key_is_buffer(&result->key) &&
           reuse(result, shuf__cells_size(result->all->cells, kind_of(result), result->bytes),
                 true);
}

bool shuf__result_reuse_any_cell(struct shuf__result *result)
{
    return !shuf__key_is_buffer(&result->key) &&
           reuse(result, shuf__cells_size(result->all->cells, kind_of(result), result->bytes),
                 false);
}

/* What is given up for others: what somebody could find only where `all`. Those that somebody has
 * mapped would free nothing. */
static bool may_go(const struct shuf__result *result, bool all)
{
    return (all || !result->found) && shuf__cell_is_unmapped(result->cell);
}

/* Gives up idle results, coldest first, until so much fits. */
static bool evict(struct shuf__results *results, enum shuf__memory kind, uint64_t size, bool all)
{
    bool any = false;
    struct shuf__result *next, *result = TAILQ_FIRST(&results->idle[shuf__pool_of(kind)]);
    for (; result && !shuf__cells_fit(results->cells, kind, size); result = next) {
        next = TAILQ_NEXT(result, coldest);
        if (!may_go(result, all))
            continue;
        results->evicted += result->found;
        give_up(result);
        any = true;
    }
    return any;
}

/* Whether that would be enough: nothing is given up in vain. */
static bool would_do(const struct shuf__results *results, enum shuf__memory kind, uint64_t size,
                     bool all)
{
    enum shuf__pool pool = shuf__pool_of(kind);
    const struct shuf__budget *budget = &results->cells->budgets[pool];
    uint64_t freed = 0;
    const struct shuf__result *result;
    if (size > budget->limit)
        return false; /* whatever is given up */
    TAILQ_FOREACH (result, &results->idle[pool], coldest)
        if (budget->used - freed > budget->limit - size && may_go(result, all))
            freed += result->cell->bytes;
    return budget->used - freed <= budget->limit - size;
}

static bool make_fit(struct shuf__results *results, enum shuf__memory kind, uint64_t size, bool all)
{
    if (shuf__cells_fit(results->cells, kind, size))
        return true;
    shuf__cells_look(results->cells);
    if (!would_do(results, kind, size, all))
        return false;
    evict(results, kind, size, all);
    return shuf__cells_fit(results->cells, kind, size);
}

shuf_status shuf__results_check_room(const struct shuf__results *results, enum shuf__memory kind,
                                     uint64_t bytes, struct shuf__error *error)
{
    const uint64_t size = shuf__cells_least_size(bytes);
    if (shuf__cells_measure(results->cells, kind, error))
        return error->status;
    if (shuf__cells_fit(results->cells, kind, size))
        return SHUF_OK;
    shuf__cells_look(results->cells);
    return would_do(results, kind, size, true)
               ? SHUF_OK
               : shuf__cells_refuse(results->cells, kind, size, error);
}

/* Rounded up, so that it serves for others; without that where so much is not to be had. */
static bool take_cell(struct shuf__result *result, bool all, uint64_t *size)
{
    struct shuf__cells *cells = result->all->cells;
    enum shuf__memory kind = kind_of(result);
    *size = shuf__cells_size(cells, kind, result->bytes);
    if (all && !shuf__cells_fit(cells, kind, *size) && !shuf__key_is_buffer(&result->key) &&
        reuse(result, *size, false))
        return true;
    if (make_fit(result->all, kind, *size, all))
        return true;
    *size = shuf__cells_least_size(result->bytes);
    return make_fit(result->all, kind, *size, all);
}

static shuf_status make_cell(struct shuf__result *result, uint64_t size, struct shuf__error *error)
{
    if (!result->cell)
        result->cell = shuf__cell_make(result->all->cells, result->key.uid, kind_of(result), size,
                                       shuf__key_is_buffer(&result->key));
    return result->cell ? SHUF_OK : shuf__fail(error, SHUF_NO_MEMORY, "result: out of memory");
}

shuf_status shuf__result_take_cell(struct shuf__result *result, struct shuf__error *error)
{
    uint64_t size;
    struct shuf__cells *cells = result->all->cells;
    if (shuf__result_reuse_cell(result))
        return SHUF_OK;
    if (shuf__cells_measure(cells, kind_of(result), error))
        return error->status;
    if (!take_cell(result, true, &size))
        return shuf__cells_refuse(cells, kind_of(result), size, error);
    return make_cell(result, size, error);
}

bool shuf__result_wish_cell(struct shuf__result *result)
{
    uint64_t size;
    struct shuf__error ignored;
    return shuf__result_reuse_cell(result) ||
           (shuf__cells_measure(result->all->cells, kind_of(result), &ignored) == SHUF_OK &&
            take_cell(result, false, &size) && make_cell(result, size, &ignored) == SHUF_OK);
}

bool shuf__result_make_room(struct shuf__result *result)
{
    struct shuf__cells *cells = result->all->cells;
    enum shuf__memory kind = kind_of(result);
    uint64_t size = result->cell->bytes;
    struct shuf__budget *budget = &cells->budgets[shuf__pool_of(kind)];
    shuf__cell_drop(result->cell);
    result->cell = NULL;
    budget->limit = budget->used; /* it was less than thought: this much is there */
    return evict(result->all, kind, size, true);
}

/* ---- references ---- */

struct shuf__result *shuf__result_ref(struct shuf__result *result)
{
    if (result->shelf)
        end_idle(result);
    result->refs++;
    return result;
}

void shuf__result_end_input(struct shuf__result *result)
{
    struct shuf__result *input = result->input;
    result->input = NULL;
    if (input)
        shuf__result_unref(input);
}

/* What was never completed is neither a result nor worth its memory; a buffer's memory is nobody
 * else's. */
void shuf__result_unref(struct shuf__result *result)
{
    struct shuf__shelf *shelf = NULL;
    assert(result->refs > 0);
    if (--result->refs > 0)
        return;
    if (result->ready && !shuf__key_is_buffer(&result->key) && result->all->keep_ms > 0) {
        shelf = find_shelf(result, result->cell->bytes);
        shelf = shelf ? shelf : make_shelf(result);
    }
    if (shelf)
        become_idle(result, shelf);
    else
        give_up(result);
}

/* ---- all of them ---- */

void shuf__results_init(struct shuf__results *results, uv_loop_t *loop)
{
    for (int pool = 0; pool < SHUF__POOLS; pool++)
        TAILQ_INIT(&results->idle[pool]);
    LIST_INIT(&results->shelves);
    uv_timer_init(loop, &results->trim);
    results->trim.data = results;
}

void shuf__results_clear(struct shuf__results *results)
{
    struct shuf__result *result;
    for (int pool = 0; pool < SHUF__POOLS; pool++)
        while ((result = TAILQ_FIRST(&results->idle[pool])) != NULL)
            give_up(result);
    uv_timer_stop(&results->trim);
}
