/* SPDX-License-Identifier: MIT
 *
 * See workspace.h.
 */
#include "workspace.h"

#include "describe.h"

struct shuf__workspace shuf__workspace_wanted(const struct shuf__result *result,
                                              const struct shuf__backend *backend)
{
    const struct shuf__job job = shuf__job_of(&result->key);
    if (result->key.buffer) /* no job */
        return (struct shuf__workspace){.kind = SHUF__MEMORY_MEMFD};
    return backend->ops->workspace(backend, &job, (enum shuf__memory)result->key.kind);
}

shuf_status shuf__workspace_could_fit(const struct shuf__result *result,
                                      const struct shuf__backend *backend,
                                      struct shuf__error *error)
{
    const struct shuf__cells *cells = result->all->cells;
    const struct shuf__workspace wanted = shuf__workspace_wanted(result, backend);
    const enum shuf__memory kind = (enum shuf__memory)result->key.kind;
    uint64_t beside = result->input ? result->input->cell->bytes : 0;
    if (shuf__pool_of(wanted.kind) == shuf__pool_of(kind))
        beside += wanted.least;
    else if (shuf__cells_could_fit(cells, wanted.kind, wanted.least, 0, error))
        return error->status;
    return shuf__cells_could_fit(cells, kind, result->bytes, beside, error);
}

/* Found by nobody, as shuffles are not. */
static struct shuf__key key_of(const struct shuf__result *result, enum shuf__memory kind)
{
    return (struct shuf__key){.record = 1, .uid = result->key.uid, .kind = kind};
}

static struct shuf__result *take(const struct shuf__result *result, enum shuf__memory kind,
                                 uint64_t bytes, struct shuf__error *error)
{
    const struct shuf__key key = key_of(result, kind);
    struct shuf__result *workspace = shuf__results_make(result->all, &key, bytes);
    if (!workspace)
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    else if (shuf__result_take_cell(workspace, error) == SHUF_OK)
        return workspace;
    else
        shuf__result_unref(workspace);
    return NULL;
}

shuf_status shuf__workspace_take(const struct shuf__result *result,
                                 const struct shuf__backend *backend,
                                 struct shuf__result **workspace, struct shuf__error *error)
{
    struct shuf__error why;
    const struct shuf__workspace wanted = shuf__workspace_wanted(result, backend);
    *workspace = NULL;
    if (wanted.best > 0)
        *workspace = take(result, wanted.kind, wanted.best, &why);
    if (!*workspace && wanted.least > 0 && wanted.least < wanted.best)
        *workspace = take(result, wanted.kind, wanted.least, &why);
    if (!*workspace && wanted.least > 0)
        return shuf__fail(error, why.status, "to compute in, beside the result: %s", why.text);
    return SHUF_OK;
}

shuf_status shuf__workspace_open(struct shuf__result *workspace, const struct shuf__result *result,
                                 struct shuf__backend *backend, const struct shuf__block **block,
                                 struct shuf__error *error)
{
    *block = NULL;
    if (!workspace)
        return SHUF_OK;
    struct shuf__cell *cell = workspace->cell;
    if (!cell->block.memory &&
        backend->ops->alloc(backend, cell->kind, cell->bytes, &cell->block, error))
        return error->status == SHUF_NO_MEMORY && shuf__workspace_wanted(result, backend).least == 0
                   ? SHUF_OK
                   : error->status;
    *block = &cell->block;
    return SHUF_OK;
}

void shuf__workspace_give_back(struct shuf__result *workspace)
{
    if (!workspace)
        return;
    if (workspace->cell && workspace->cell->block.memory) {
        workspace->ready = true;
        shuf__cell_back(workspace->cell, workspace->cell->bytes);
    }
    shuf__result_unref(workspace);
}
