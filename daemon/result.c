/* SPDX-License-Identifier: MIT
 *
 * See result.h.
 */
#include "result.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

enum { RESERVE = 16 }; /* one part in so many of the device's memory is left to others */

shuf_status shuf__budget_left(struct shuf__budget *budget, struct shuf__backend *backend,
                              uint64_t *left, struct shuf__error *error)
{
    uint64_t available, total, used = atomic_load(&budget->used), limit = budget->configured;
    if (limit == 0) {
        if (backend->ops->memory(backend, &available, &total, error))
            return error->status;
        limit = used + (available > total / RESERVE ? available - total / RESERVE : 0);
    }
    atomic_store(&budget->limit, limit);
    *left = limit > used ? limit - used : 0;
    return SHUF_OK;
}

/* What fits but for the results of others is worth another try, and nothing else is. */
static shuf_status refuse(struct shuf__budget *budget, uint64_t bytes, struct shuf__error *error)
{
    uint64_t limit = atomic_load(&budget->limit), used = atomic_load(&budget->used);
    if (bytes > limit)
        return shuf__fail(error, SHUF_NO_MEMORY,
                          "result of %" PRIu64 " bytes: expected at most %" PRIu64
                          ", all that results may hold (%" PRIu64 " are in use)",
                          bytes, limit, used);
    return shuf__fail(error, SHUF_BUSY,
                      "result of %" PRIu64 " bytes: %" PRIu64 " of %" PRIu64
                      " are in use by other results; try again",
                      bytes, used, limit);
}

static shuf_status make_block(struct shuf__budget *budget, struct shuf__backend *backend,
                              uint64_t bytes, struct shuf__block *block, struct shuf__error *error)
{
    uint64_t left;
    if (shuf__budget_left(budget, backend, &left, error))
        return error->status;
    if (bytes > left)
        return refuse(budget, bytes, error);
    if (backend->ops->alloc(backend, bytes, block, error))
        return error->status;
    atomic_fetch_add(&budget->used, block->bytes);
    return SHUF_OK;
}

shuf_status shuf__result_make(struct shuf__budget *budget, struct shuf__backend *backend,
                              uint64_t bytes, struct shuf__result **out, struct shuf__error *error)
{
    struct shuf__result *result = calloc(1, sizeof *result);
    if (!result)
        return shuf__fail(error, SHUF_NO_MEMORY, "result: out of memory");
    result->budget = budget;
    if (make_block(budget, backend, bytes, &result->block, error)) {
        free(result);
        return error->status;
    }
    *out = result;
    return SHUF_OK;
}

static void free_block(struct shuf__result *result, struct shuf__backend *backend)
{
    atomic_fetch_sub(&result->budget->used, result->block.bytes);
    backend->ops->free(backend, &result->block);
}

void shuf__result_drop(struct shuf__result *result, struct shuf__backend *backend)
{
    free_block(result, backend);
    free(result);
}

static struct shuf__result *result_of(struct shuf__task *task)
{
    return (struct shuf__result *)((char *)task - offsetof(struct shuf__result, release));
}

static void run_release(struct shuf__task *task, struct shuf__backend *backend)
{
    free_block(result_of(task), backend);
}

static void end_release(struct shuf__task *task)
{
    free(result_of(task));
}

void shuf__result_release(struct shuf__result *result, struct shuf__engine *engine)
{
    result->release.run = run_release;
    result->release.done = end_release;
    shuf__engine_follow_up(engine, &result->release);
}
