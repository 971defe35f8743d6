/* SPDX-License-Identifier: MIT
 *
 * See ranks.h.
 */
#include "ranks.h"

#include "end_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Errors ------------------------------------------------------------------ */

static shuf_status fail(struct shuf__nccl_ranks *r, shuf_status status, const char *call,
                        const char *why)
{
    return shuf__fail(r->error, status, "rank %d of %d: %s: %s", r->rank, r->world, call, why);
}

shuf_status shuf__nccl_check_cuda(struct shuf__nccl_ranks *ranks, const char *call,
                                  cudaError_t result)
{
    if (result == cudaSuccess)
        return SHUF_OK;
    cudaGetLastError(); /* otherwise the next check of the program would report it */
    return fail(ranks, result == cudaErrorMemoryAllocation ? SHUF_NO_MEMORY : SHUF_DEVICE, call,
                cudaGetErrorString(result));
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Most rounds end soon after the wait begins, and waking a thread takes long. */
static void pause_since(uint64_t begin)
{
    const struct timespec nap = {0, 20000};
    if (now_ns() - begin > 50000)
        nanosleep(&nap, NULL);
}

static shuf_status check_time(struct shuf__nccl_ranks *r, uint64_t begin)
{
    char why[64];
    if (r->timeout_ms == 0 || (now_ns() - begin) / 1000000 < r->timeout_ms)
        return SHUF_OK;
    snprintf(why, sizeof why, "no end after %" PRIu64 " ms", r->timeout_ms);
    return fail(r, SHUF_TIMEOUT, "exchange", why);
}

/* Fails if the communicator has failed since its last call. *busy: it has not completed that
 * call. */
static shuf_status check_communicator(struct shuf__nccl_ranks *r, bool *busy)
{
    ncclResult_t later = ncclSuccess;
    const ncclResult_t result = ncclCommGetAsyncError(r->comm, &later);
    *busy = result == ncclSuccess && later == ncclInProgress;
    if (*busy || (result == ncclSuccess && later == ncclSuccess))
        return SHUF_OK;
    return fail(r, SHUF_IO, "exchange", ncclGetErrorString(result == ncclSuccess ? later : result));
}

/* The functions of a communicator that does not block return before they are complete. */
static shuf_status complete(struct shuf__nccl_ranks *r)
{
    bool busy = true;
    for (const uint64_t begin = now_ns(); busy; pause_since(begin))
        if (check_communicator(r, &busy) || (busy && check_time(r, begin)))
            return r->error->status;
    return SHUF_OK;
}

shuf_status shuf__nccl_check(struct shuf__nccl_ranks *ranks, const char *call, ncclResult_t result)
{
    if (result == ncclSuccess)
        return SHUF_OK;
    if (result == ncclInProgress)
        return complete(ranks);
    return fail(ranks, SHUF_IO, call, ncclGetErrorString(result));
}

shuf_status shuf__nccl_wait(struct shuf__nccl_ranks *ranks, cudaEvent_t event)
{
    bool busy;
    cudaError_t e;
    const uint64_t begin = now_ns();
    while ((e = cudaEventQuery(event)) == cudaErrorNotReady) {
        cudaGetLastError(); /* "not ready" stays there as an error */
        if (check_communicator(ranks, &busy) || check_time(ranks, begin))
            return ranks->error->status;
        pause_since(begin);
    }
    return shuf__nccl_check_cuda(ranks, "cudaEventQuery", e);
}

/* ---- Begin and end ----------------------------------------------------------- */

shuf_status shuf__nccl_make_event(struct shuf__nccl_ranks *ranks, cudaEvent_t *event)
{
    return shuf__nccl_check_cuda(ranks, "cudaEventCreateWithFlags",
                                 cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

shuf_status shuf__nccl_allocate(struct shuf__nccl_ranks *ranks, void **memory, uint64_t bytes)
{
    return shuf__nccl_check_cuda(ranks, "cudaMalloc", cudaMalloc(memory, bytes));
}

/* NCCL may still use the memory if another rank has ended. So the free waits in the stream.
 * cudaMallocAsync() is no choice above: ranks in one process write to each other's memory, and that
 * of a pool is not mapped on other devices. */
void shuf__nccl_free(struct shuf__nccl_ranks *ranks, void *memory)
{
    if (memory)
        cudaFreeAsync(memory, ranks->stream);
}

static shuf_status make_stream(struct shuf__nccl_ranks *r, cudaStream_t after)
{
    if (shuf__nccl_check_cuda(r, "cudaStreamCreateWithFlags",
                              cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking)) ||
        shuf__nccl_make_event(r, &r->gathered) ||
        shuf__nccl_check_cuda(r, "cudaEventRecord", cudaEventRecord(r->gathered, after)))
        return r->error->status;
    return shuf__nccl_check_cuda(r, "cudaStreamWaitEvent",
                                 cudaStreamWaitEvent(r->stream, r->gathered, 0));
}

shuf_status shuf__nccl_ranks_open(struct shuf__nccl_ranks *ranks, cudaStream_t after)
{
    if (make_stream(ranks, after))
        return ranks->error->status;
    const size_t bytes = (size_t)ranks->world * sizeof *ranks->all;
    ranks->all = malloc(bytes);
    if (!ranks->all)
        return fail(ranks, SHUF_NO_MEMORY, "malloc", "out of memory");
    return shuf__nccl_allocate(ranks, (void **)&ranks->there, bytes);
}

void shuf__nccl_ranks_close(struct shuf__nccl_ranks *ranks)
{
    shuf__nccl_free(ranks, ranks->there);
    free(ranks->all);
    if (ranks->gathered)
        cudaEventDestroy(ranks->gathered);
    if (ranks->stream)
        shuf__nccl_end_stream(ranks->stream, ranks->device);
}

/* ---- Messages and records ---------------------------------------------------- */

shuf_status shuf__nccl_gather(struct shuf__nccl_ranks *ranks,
                              const struct shuf__nccl_report *report)
{
    struct shuf__nccl_report *own = ranks->there + ranks->rank;
    if (shuf__nccl_check_cuda(
            ranks, "cudaMemcpyAsync",
            cudaMemcpyAsync(own, report, sizeof *report, cudaMemcpyHostToDevice, ranks->stream)) ||
        shuf__nccl_check(ranks, "ncclAllGather",
                         ncclAllGather(own, ranks->there, sizeof *report, ncclUint8, ranks->comm,
                                       ranks->stream)) ||
        shuf__nccl_check_cuda(ranks, "cudaEventRecord",
                              cudaEventRecord(ranks->gathered, ranks->stream)) ||
        shuf__nccl_wait(ranks, ranks->gathered))
        return ranks->error->status;
    return shuf__nccl_check_cuda(ranks, "cudaMemcpy",
                                 cudaMemcpy(ranks->all, ranks->there,
                                            (size_t)ranks->world * sizeof *report,
                                            cudaMemcpyDeviceToHost));
}

/* Queues the sends and receives. At each step, every rank sends to one rank and receives from
 * one. */
static ncclResult_t queue_round(const struct shuf__nccl_ranks *r,
                                const struct shuf__nccl_round *round)
{
    ncclResult_t result = ncclSuccess;
    for (int step = 1; step < r->world && result == ncclSuccess; step++) {
        const int target = (r->rank + step) % r->world;
        const int source = (r->rank - step + r->world) % r->world;
        const struct shuf__nccl_segment *a = round->leaving + target, *b = round->coming + source;
        const uint64_t to = shuf__nccl_slice_count(a->count, round->round, round->rounds);
        const uint64_t from = shuf__nccl_slice_count(b->count, round->round, round->rounds);
        if (to > 0)
            result = ncclSend(round->sent + a->to * round->record, to * round->record, ncclUint8,
                              target, r->comm, r->stream);
        if (from > 0 && result == ncclSuccess)
            result = ncclRecv(round->received + b->from * round->record, from * round->record,
                              ncclUint8, source, r->comm, r->stream);
    }
    return result;
}

shuf_status shuf__nccl_send_round(struct shuf__nccl_ranks *ranks,
                                  const struct shuf__nccl_round *round)
{
    if (shuf__nccl_check(ranks, "ncclGroupStart", ncclGroupStart()))
        return ranks->error->status;
    const ncclResult_t queued = queue_round(ranks, round), ended = ncclGroupEnd();
    if (shuf__nccl_check(ranks, "ncclSend or ncclRecv", queued))
        return ranks->error->status;
    return shuf__nccl_check(ranks, "ncclGroupEnd", ended);
}
