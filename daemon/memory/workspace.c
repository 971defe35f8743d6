/* SPDX-License-Identifier: MIT
 *
 * See workspace.h.
 */
#include "workspace.h"

#include "refusal.h"

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
