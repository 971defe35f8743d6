/* SPDX-License-Identifier: MIT
 *
 * See transfer.h.
 */
#include "transfer.h"

#include "move.h"

enum { ALIGNMENT = 256 }; /* of buffers: at least the widest word that a kernel moves */

static uint64_t align(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- Memory ------------------------------------------------------------------ */

static uint64_t segment_bytes(const struct shuf__nccl_transfer *t)
{
    return align(shuf__nccl_segment_count(t->ranks) * sizeof(struct shuf__nccl_segment));
}

/* The bytes of the buffers of a round. */
struct sizes {
    uint64_t sent, received;
};

static uint64_t buffer_bytes(const struct shuf__nccl_transfer *t,
                             const struct shuf__nccl_segment *segments)
{
    const unsigned world = (unsigned)t->ranks->world;
    return align(shuf__nccl_buffer_records(segments, world, t->rounds) * t->record);
}

/* Sets the rounds for the budget. Returns the bytes of one allocation for all that they need. */
static uint64_t lay_out(struct shuf__nccl_transfer *t, uint64_t budget, struct sizes *sizes)
{
    const struct shuf__nccl_plan *p = t->plan;
    t->rounds = shuf__nccl_count_rounds(p->leaving, p->coming, (unsigned)t->ranks->world, t->record,
                                        budget);
    sizes->sent = buffer_bytes(t, p->leaving);
    sizes->received = buffer_bytes(t, p->coming);
    return segment_bytes(t) + 2 * (sizes->sent + sizes->received);
}

/* Takes more and shorter rounds if the GPU has no memory for longer ones. */
static shuf_status allocate(struct shuf__nccl_transfer *t, uint64_t budget, struct sizes *sizes)
{
    const uint64_t least = lay_out(t, 0, sizes);
    uint64_t bytes = lay_out(t, budget, sizes);
    cudaError_t e = cudaMalloc((void **)&t->memory, bytes);
    while (e == cudaErrorMemoryAllocation && bytes > least) {
        cudaGetLastError(); /* the runtime would report the failure again */
        budget /= 2;
        bytes = lay_out(t, budget, sizes);
        e = cudaMalloc((void **)&t->memory, bytes);
    }
    return shuf__nccl_check_cuda(t->ranks, "cudaMalloc", e);
}

shuf_status shuf__nccl_transfer_prepare(struct shuf__nccl_transfer *transfer, uint64_t budget)
{
    struct shuf__nccl_ranks *r = transfer->ranks;
    struct sizes sizes;
    if (shuf__nccl_make_event(r, &transfer->moved) ||
        shuf__nccl_make_event(r, &transfer->exchanged[0]) ||
        shuf__nccl_make_event(r, &transfer->exchanged[1]) || allocate(transfer, budget, &sizes))
        return r->error->status;
    char *at = transfer->memory + segment_bytes(transfer);
    for (int i = 0; i < 2; i++, at += sizes.sent + sizes.received) {
        transfer->sent[i] = at;
        transfer->received[i] = at + sizes.sent;
    }
    return SHUF_OK;
}

void shuf__nccl_transfer_end(struct shuf__nccl_transfer *transfer)
{
    const cudaEvent_t events[] = {transfer->moved, transfer->exchanged[0], transfer->exchanged[1]};
    if (transfer->moved)
        cudaEventSynchronize(transfer->moved);
    for (int i = 0; i < 3; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    shuf__nccl_free(transfer->ranks, transfer->memory);
}

/* ---- Moves ------------------------------------------------------------------- */

/* Gives each segment its place in the buffers, with room for its longest slice. */
static shuf_status place_segments(struct shuf__nccl_transfer *t)
{
    const struct shuf__nccl_plan *p = t->plan;
    uint64_t sent = 0, received = 0;
    for (int i = 0; i < t->ranks->world && t->rounds > 0; i++) {
        p->leaving[i].to = sent;
        p->coming[i].from = received;
        sent += shuf__nccl_slice_count(p->leaving[i].count, 0, t->rounds);
        received += shuf__nccl_slice_count(p->coming[i].count, 0, t->rounds);
    }
    return shuf__nccl_check_cuda(
        t->ranks, "cudaMemcpyAsync",
        cudaMemcpyAsync(t->memory, p->leaving,
                        shuf__nccl_segment_count(t->ranks) * sizeof *p->leaving,
                        cudaMemcpyHostToDevice, t->stream));
}

static uint64_t longest_slice(const struct shuf__nccl_segment *segments, unsigned count,
                              uint64_t rounds)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint64_t records = shuf__nccl_slice_count(segments[i].count, 0, rounds);
        most = records > most ? records : most;
    }
    return most;
}

/* Starts the move of `count` segments of the plan, and records the event. */
static shuf_status move(struct shuf__nccl_transfer *t, struct shuf__nccl_move m,
                        const struct shuf__nccl_segment *segments, unsigned count)
{
    m.segments = (struct shuf__nccl_segment *)t->memory + (segments - t->plan->leaving);
    m.segment_count = count;
    m.width = t->plan->width;
    m.record = t->record;
    m.most = longest_slice(segments, count, m.rounds);
    const cudaError_t launched = shuf__nccl_move(&m, t->stream);
    const cudaError_t recorded = cudaEventRecord(t->moved, t->stream);
    if (shuf__nccl_check_cuda(t->ranks, "move", launched))
        return t->ranks->error->status;
    return shuf__nccl_check_cuda(t->ranks, "cudaEventRecord", recorded);
}

static shuf_status move_own(struct shuf__nccl_transfer *t)
{
    const struct shuf__nccl_move m = {.in = t->input,
                                      .in_list = t->plan->order,
                                      .out = t->output,
                                      .out_list = t->plan->places,
                                      .rounds = 1};
    return move(t, m, t->plan->own, 1);
}

static shuf_status gather(struct shuf__nccl_transfer *t, uint64_t round)
{
    const struct shuf__nccl_move m = {.in = t->input,
                                      .in_list = t->plan->order,
                                      .out = t->sent[round % 2],
                                      .round = round,
                                      .rounds = t->rounds};
    return move(t, m, t->plan->leaving, (unsigned)t->ranks->world);
}

static shuf_status scatter(struct shuf__nccl_transfer *t, uint64_t round)
{
    const struct shuf__nccl_move m = {.in = t->received[round % 2],
                                      .out = t->output,
                                      .out_list = t->plan->places,
                                      .round = round,
                                      .rounds = t->rounds};
    return move(t, m, t->plan->coming, (unsigned)t->ranks->world);
}

/* ---- Rounds ------------------------------------------------------------------ */

/* Gathers the records of a round and starts their exchange. The buffers are free: the host has
 * waited for the exchange that used them before, and its scatter precedes this gather. */
static shuf_status start_round(struct shuf__nccl_transfer *t, uint64_t round)
{
    struct shuf__nccl_ranks *r = t->ranks;
    const struct shuf__nccl_round buffers = {.sent = t->sent[round % 2],
                                             .received = t->received[round % 2],
                                             .leaving = t->plan->leaving,
                                             .coming = t->plan->coming,
                                             .record = t->record,
                                             .round = round,
                                             .rounds = t->rounds};
    if (gather(t, round) || shuf__nccl_check_cuda(r, "cudaStreamWaitEvent",
                                                  cudaStreamWaitEvent(r->stream, t->moved, 0)))
        return r->error->status;
    if (shuf__nccl_send_round(r, &buffers))
        return r->error->status;
    return shuf__nccl_check_cuda(r, "cudaEventRecord",
                                 cudaEventRecord(t->exchanged[round % 2], r->stream));
}

/* The host waits for the exchange, not the stream of the caller. So that stream has no work that
 * waits for other ranks, and the lease can end if one of them fails. */
static shuf_status finish_round(struct shuf__nccl_transfer *t, uint64_t round)
{
    if (shuf__nccl_wait(t->ranks, t->exchanged[round % 2]))
        return t->ranks->error->status;
    return scatter(t, round);
}

static shuf_status run_rounds(struct shuf__nccl_transfer *t)
{
    if (t->rounds > 0 && start_round(t, 0))
        return t->ranks->error->status;
    if (move_own(t))
        return t->ranks->error->status;
    for (uint64_t round = 0; round < t->rounds; round++) {
        if (round + 1 < t->rounds && start_round(t, round + 1))
            return t->ranks->error->status;
        if (finish_round(t, round))
            return t->ranks->error->status;
    }
    return SHUF_OK;
}

shuf_status shuf__nccl_transfer_run(struct shuf__nccl_transfer *transfer, uint64_t rounds)
{
    struct shuf__nccl_ranks *r = transfer->ranks;
    transfer->rounds = r->world > 1 ? rounds : 0;
    if (place_segments(transfer) || run_rounds(transfer))
        return r->error->status;
    return shuf__nccl_check_cuda(r, "cudaEventSynchronize", cudaEventSynchronize(transfer->moved));
}
