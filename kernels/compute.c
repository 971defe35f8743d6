/* SPDX-License-Identifier: MIT
 *
 * The steps of a computation that all backends share.
 */
#include "backend.h"
#include "shuf/domain.h"
#include "shuf/primefold.h"

enum { EVALUATIONS_A_WINDOW = 1024 }; /* as long as its keys and its list of chunks take */

/* The windows with values in a row, or up to two more. The numbers of a request may be so large
 * that their products do not fit 64 bits, so these estimates are doubles. */
static double windows_of_values(const struct shuf__permutation *p)
{
    const double records = (double)p->chunk * (double)p->window, stride = (double)p->stride;
    return stride < records ? (double)p->count * stride / records + 2 : (double)p->count;
}

/* The numbers that a row evaluates: with random access only the requested values, with compaction
 * the whole domain. For n <= SHUF_PRIMEFOLD_EXACT, primefold does all exchanges of a row. Windows
 * come on top. */
static double evaluations_a_row(const struct shuf__request *request)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    double count = (double)shuf__request_shape(request).count;
    if (p && !shuf_algorithm_has_random_access(p->algorithm))
        return (double)(UINT64_C(1) << shuf_domain_bits(p->n));
    if (p && p->n <= SHUF_PRIMEFOLD_EXACT)
        count = (double)p->n;
    if (p && p->window)
        count += windows_of_values(p) * EVALUATIONS_A_WINDOW;
    return count > 1 ? count : 1;
}

double shuf__backend_evaluations(const struct shuf__request *request)
{
    return (double)shuf__request_shape(request).rows * evaluations_a_row(request);
}

/* `limit` is ops->quick or ops->small. */
static bool is_within(uint64_t limit, const struct shuf__backend_ops *ops,
                      const struct shuf__request *request)
{
    const struct shuf__shuffle *s = &request->shuffle;
    if (request->kind == SHUF__SHUFFLE && s->permutation.n > 8 * limit / s->record)
        return false;
    const double rows = (double)shuf__request_shape(request).rows,
                 of_keys = rows > 1 ? (double)ops->quick_row : 0;
    return rows * (evaluations_a_row(request) + of_keys) <= (double)limit;
}

bool shuf__backend_is_quick(const struct shuf__backend_ops *ops,
                            const struct shuf__request *request)
{
    return is_within(ops->quick, ops, request);
}

bool shuf__backend_is_small(const struct shuf__backend_ops *ops,
                            const struct shuf__request *request)
{
    const enum shuf__request_kind kind = request->kind;
    return (kind == SHUF__PERMUTATION || kind == SHUF__STREAM || kind == SHUF__SHUFFLE) &&
           is_within(ops->small, ops, request);
}

static uint64_t whole_units(uint64_t bytes)
{
    return (bytes + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT * SHUF__BLOCK_UNIT;
}

shuf_status shuf__backend_alloc_workspace(struct shuf__backend *backend,
                                          const struct shuf__workspace *needs,
                                          struct shuf__block *block, struct shuf__error *error)
{
    const struct shuf__backend_ops *ops = backend->ops;
    const uint64_t best = whole_units(needs->best), least = whole_units(needs->least);
    shuf_status status = ops->alloc(backend, needs->kind, best, block, error);
    if (status == SHUF_NO_MEMORY && least < best)
        status = ops->alloc(backend, needs->kind, least, block, error);
    return status;
}

static shuf_status compute(struct shuf__backend *backend,
                           const struct shuf__computation *computation, struct shuf__block *block,
                           uint64_t *device_ns, struct shuf__error *error)
{
    struct shuf__error of_wait;
    if (backend->ops->launch(backend, computation, block, error))
        return error->status;
    const shuf_status status =
        computation->follow
            ? computation->follow(computation->follow_context, backend, block, error)
            : SHUF_OK;
    shuf_status waited = SHUF_OK;
    for (bool done = false; waited == SHUF_OK && !done;)
        waited = backend->ops->wait(backend, UINT64_MAX, &done, device_ns,
                                    status == SHUF_OK ? error : &of_wait);
    return status == SHUF_OK ? waited : status;
}

shuf_status shuf__backend_compute(struct shuf__backend *backend,
                                  const struct shuf__computation *computation,
                                  struct shuf__block *block, uint64_t *device_ns,
                                  struct shuf__error *error)
{
    struct shuf__computation with = *computation;
    struct shuf__block workspace;
    const struct shuf__workspace needs =
        backend->ops->workspace(backend, &computation->request, block->kind);
    if (computation->workspace || needs.best == 0)
        return compute(backend, computation, block, device_ns, error);
    if (shuf__backend_alloc_workspace(backend, &needs, &workspace, error))
        return error->status;
    with.workspace = workspace.memory ? &workspace : NULL;
    const shuf_status status = compute(backend, &with, block, device_ns, error);
    backend->ops->free(backend, &workspace);
    return status;
}

void shuf__sums_add(struct shuf__sums *sums, const struct shuf__sums *more)
{
    for (int k = 0; k < 4; k++)
        sums->power[k] += more->power[k];
    if (more->least < sums->least)
        sums->least = more->least;
    if (more->largest > sums->largest)
        sums->largest = more->largest;
}
