/* SPDX-License-Identifier: MIT
 *
 * See workspace.h.
 */
#include "workspace.h"

#include "cache/summary.h"

struct shuf__workspace shuf__workspace_wanted(const struct shuf__cache_entry *result,
                                              const struct shuf__backend *backend)
{
    if (shuf__key_is_buffer(&result->key)) /* no job */
        return (struct shuf__workspace){.kind = SHUF__MEMORY_MEMFD};
    return backend->ops->workspace(backend, &result->key.request, result->key.kind);
}

static shuf_status refuse(const struct shuf__error *why, struct shuf__error *error)
{
    return shuf__fail(error, why->status, "to compute in: %s", why->text);
}

shuf_status shuf__workspace_could_fit(const struct shuf__cache_entry *result,
                                      const struct shuf__backend *backend,
                                      struct shuf__error *error)
{
    const struct shuf__allocations *allocations = result->all->allocations;
    const struct shuf__workspace wanted = shuf__workspace_wanted(result, backend);
    const enum shuf__memory kind = result->key.kind;
    const struct shuf__allocation *input = result->input ? result->input->allocation : NULL;
    struct shuf__error why;
    uint64_t beside = input ? input->bytes : 0;
    if (shuf__pool_of(wanted.kind) == shuf__pool_of(kind))
        beside += wanted.least;
    else if (shuf__allocations_could_fit(allocations, wanted.kind, wanted.least, 0, &why))
        return refuse(&why, error);
    return shuf__allocations_could_fit(allocations, kind, result->bytes, beside, error);
}

static shuf_status check_sum(const struct shuf__cache_entry *result,
                             const struct shuf__workspace *wanted, bool together,
                             struct shuf__error *error)
{
    uint64_t bytes = shuf__allocations_least_size(wanted->least);
    if (together && !result->allocation)
        bytes += shuf__allocations_least_size(result->bytes);
    return shuf__cache_check_room(result->all, wanted->kind, bytes, error);
}

/* A block that its client keeps mapped frees nothing, but may serve again. */
shuf_status shuf__workspace_make_sure(struct shuf__cache_entry *result,
                                      const struct shuf__backend *backend,
                                      struct shuf__error *error)
{
    struct shuf__error why;
    const struct shuf__workspace wanted = shuf__workspace_wanted(result, backend);
    const bool together = shuf__pool_of(wanted.kind) == shuf__pool_of(result->key.kind);
    if (wanted.least == 0 || check_sum(result, &wanted, together, &why) == SHUF_OK)
        return SHUF_OK;
    if (together && !result->allocation && shuf__cache_entry_reuse_any_allocation(result) &&
        check_sum(result, &wanted, together, &why) == SHUF_OK)
        return SHUF_OK;
    if (!together)
        return refuse(&why, error);
    return shuf__fail(error, why.status, "with what is computed in: %s", why.text);
}

static struct shuf__cache_entry *make(const struct shuf__cache_entry *result,
                                      enum shuf__memory kind, uint64_t bytes)
{
    const struct shuf__key key = {.uid = result->key.uid, .kind = kind, .role = SHUF__WORKSPACE};
    return shuf__cache_add(result->all, &key, bytes);
}

static struct shuf__cache_entry *wish(const struct shuf__cache_entry *result,
                                      enum shuf__memory kind, uint64_t bytes)
{
    struct shuf__cache_entry *workspace = make(result, kind, bytes);
    if (!workspace || shuf__cache_entry_wish_allocation(workspace))
        return workspace;
    shuf__cache_entry_unref(workspace);
    return NULL;
}

static shuf_status need(const struct shuf__cache_entry *result, enum shuf__memory kind,
                        uint64_t bytes, struct shuf__cache_entry **workspace,
                        struct shuf__error *error)
{
    struct shuf__error why;
    *workspace = make(result, kind, bytes);
    if (!*workspace)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    if (shuf__cache_entry_take_allocation(*workspace, &why) == SHUF_OK)
        return SHUF_OK;
    shuf__cache_entry_unref(*workspace);
    *workspace = NULL;
    return refuse(&why, error);
}

shuf_status shuf__workspace_take(const struct shuf__cache_entry *result,
                                 const struct shuf__backend *backend, bool sparing,
                                 struct shuf__cache_entry **workspace, struct shuf__error *error)
{
    const struct shuf__workspace wanted = shuf__workspace_wanted(result, backend);
    *workspace = NULL;
    if (wanted.best > wanted.least && !sparing)
        *workspace = wish(result, wanted.kind, wanted.best);
    if (!*workspace && wanted.least > 0)
        return need(result, wanted.kind, wanted.least, workspace, error);
    return SHUF_OK;
}

shuf_status shuf__workspace_open(struct shuf__cache_entry *workspace,
                                 const struct shuf__cache_entry *result,
                                 struct shuf__backend *backend, const struct shuf__block **block,
                                 struct shuf__error *error)
{
    *block = NULL;
    if (!workspace)
        return SHUF_OK;
    struct shuf__allocation *allocation = workspace->allocation;
    if (!allocation->block.memory &&
        backend->ops->alloc(backend, allocation->kind, allocation->bytes, &allocation->block,
                            error))
        return shuf__workspace_wanted(result, backend).least == 0 ? SHUF_OK : error->status;
    *block = &allocation->block;
    return SHUF_OK;
}

/* Of host memory only what was written to for certain is known to be there. */
void shuf__workspace_give_back(struct shuf__cache_entry *workspace, bool done)
{
    if (!workspace)
        return;
    struct shuf__allocation *allocation = workspace->allocation;
    if (allocation && allocation->block.memory) {
        workspace->ready = true;
        shuf__allocation_commit(allocation, !shuf__memory_is_host(allocation->kind)
                                                ? allocation->bytes
                                            : done ? workspace->bytes
                                                   : 0);
    }
    shuf__cache_entry_unref(workspace);
}
