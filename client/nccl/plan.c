/* SPDX-License-Identifier: MIT
 *
 * See plan.h.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- The lease --------------------------------------------------------------- */

static shuf_status daemon_failed(shuf *handle, struct shuf__nccl_ranks *r, shuf_status status)
{
    return shuf__fail(r->error, status, "%s", shuf_message(handle));
}

static bool is_on_device(const void *data, int device)
{
    struct cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, data) == cudaSuccess)
        return attributes.type == cudaMemoryTypeDevice && attributes.device == device;
    cudaGetLastError();
    return false;
}

/* Leases the plan in the memory of this GPU. Otherwise, if the daemon computes elsewhere or may not
 * lend that memory, in host memory. */
static shuf_status lease_plan(struct shuf__nccl_plan *p, shuf *handle, struct shuf__nccl_ranks *r,
                              const shuf_ranks *request)
{
    static const shuf_lease_options device = {.transports = SHUF_CUDA_FD};
    shuf_status status = shuf_exchange_lease(handle, request, &device, &p->lease);
    if (status == SHUF_OK && is_on_device(p->lease->data, r->device))
        return SHUF_OK;
    if (status == SHUF_OK || status == SHUF_INVALID || status == SHUF_DENIED ||
        status == SHUF_DEVICE || status == SHUF_NO_MEMORY)
        status = shuf_exchange_lease(handle, request, NULL, &p->lease);
    return status == SHUF_OK ? SHUF_OK : daemon_failed(handle, r, status);
}

static shuf_status copy_to_device(struct shuf__nccl_plan *p, struct shuf__nccl_ranks *r)
{
    const uint64_t bytes = p->lease->result.shape.bytes;
    if (shuf__nccl_allocate(r, &p->copy, bytes))
        return r->error->status;
    return shuf__nccl_check_cuda(
        r, "cudaMemcpy", cudaMemcpy(p->copy, p->lease->data, bytes, cudaMemcpyHostToDevice));
}

static shuf_status set_lists(struct shuf__nccl_plan *p, struct shuf__nccl_ranks *r)
{
    const uint64_t input = r->all[r->rank].input, width = p->lease->result.shape.width;
    if (p->lease->device_id[0] == '\0' && copy_to_device(p, r))
        return r->error->status;
    p->width = (unsigned)width;
    p->order = (const char *)(p->copy ? p->copy : p->lease->data) + 2 * (uint64_t)r->world * width;
    p->places = (const char *)p->order + input * width;
    return SHUF_OK;
}

/* ---- The segments ------------------------------------------------------------ */

static uint64_t count_at(const char *counts, unsigned width, unsigned at)
{
    uint32_t narrow;
    uint64_t wide;
    memcpy(&narrow, counts + (size_t)at * width, sizeof narrow);
    if (width == sizeof narrow)
        return narrow;
    memcpy(&wide, counts + (size_t)at * width, sizeof wide);
    return wide;
}

static void set_segments(struct shuf__nccl_plan *p, const struct shuf__nccl_ranks *r,
                         const char *counts)
{
    const unsigned world = (unsigned)r->world, self = (unsigned)r->rank;
    uint64_t from = 0, to = 0;
    p->coming = p->leaving + world;
    p->own = p->coming + world;
    for (unsigned i = 0; i < world; i++) {
        p->leaving[i] = (struct shuf__nccl_segment){count_at(counts, p->width, i), from, 0};
        p->coming[i] = (struct shuf__nccl_segment){count_at(counts, p->width, world + i), 0, to};
        from += p->leaving[i].count;
        to += p->coming[i].count;
    }
    *p->own = p->leaving[self];
    p->own->to = p->coming[self].to;
    p->leaving[self].count = p->coming[self].count = 0;
}

static shuf_status read_counts(struct shuf__nccl_plan *p, shuf *handle, struct shuf__nccl_ranks *r)
{
    const size_t bytes = 2 * (size_t)r->world * p->width;
    char *counts = malloc(bytes);
    p->leaving = calloc(shuf__nccl_segment_count(r), sizeof *p->leaving);
    shuf_status status = SHUF_OK;
    if (!counts || !p->leaving)
        status = shuf__fail(r->error, SHUF_NO_MEMORY, "plan: out of memory");
    else if ((status = shuf_lease_read(handle, p->lease, 0, bytes, counts)))
        daemon_failed(handle, r, status);
    else
        set_segments(p, r, counts);
    free(counts);
    return status;
}

/* ---- The plan ---------------------------------------------------------------- */

static shuf_status take(struct shuf__nccl_plan *p, shuf *handle, struct shuf__nccl_ranks *r,
                        const shuf_ranks *request)
{
    if (lease_plan(p, handle, r, request) || set_lists(p, r))
        return r->error->status;
    return read_counts(p, handle, r);
}

shuf_status shuf__nccl_plan_take(struct shuf__nccl_plan *plan, shuf *handle,
                                 struct shuf__nccl_ranks *ranks, const shuf_nccl_request *request)
{
    const unsigned world = (unsigned)ranks->world;
    uint64_t *sizes = malloc(2 * (size_t)world * sizeof *sizes);
    if (!sizes)
        return shuf__fail(ranks->error, SHUF_NO_MEMORY, "plan: out of memory");
    for (unsigned r = 0; r < world; r++) {
        sizes[r] = ranks->all[r].input;
        sizes[world + r] = ranks->all[r].output;
    }
    const shuf_ranks exchange = {
        .algorithm = request->algorithm,
        .n = shuf__nccl_sum_inputs(ranks->all, world),
        .seed = request->seed,
        .epoch = request->epoch,
        .key = request->key,
        .inverse = request->inverse,
        .rank = (uint64_t)ranks->rank,
        .world = world,
        .input = sizes,
        .output = sizes + world,
    };
    const shuf_status status = take(plan, handle, ranks, &exchange);
    free(sizes);
    return status;
}

void shuf__nccl_plan_end(struct shuf__nccl_plan *plan, shuf *handle, struct shuf__nccl_ranks *ranks)
{
    shuf_lease_release(handle, &plan->lease);
    shuf__nccl_free(ranks, plan->copy);
    free(plan->leaving);
}
