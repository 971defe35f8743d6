/* SPDX-License-Identifier: MIT
 *
 * The public call: the ranks compare their arguments, take their plans and memory, tell each other
 * whether this succeeded, and exchange their records.
 */
#include "shuf_nccl.h"

#include "transfer.h"

#define DEFAULT_BUDGET (UINT64_C(256) << 20)

static _Thread_local struct shuf__error last_error;

const char *shuf_nccl_message(void)
{
    return last_error.text;
}

struct shuffle {
    shuf *handle;
    const shuf_nccl_request *request;
    struct shuf__nccl_report report;
    struct shuf__nccl_ranks ranks;
    struct shuf__nccl_plan plan;
    struct shuf__nccl_transfer transfer;
};

/* The status of this rank, which the others hear next. */
static shuf_status prepare(struct shuffle *s)
{
    const uint64_t budget = s->request->budget;
    if (shuf__nccl_plan_take(&s->plan, s->handle, &s->ranks, s->request))
        return s->ranks.error->status;
    return shuf__nccl_transfer_prepare(&s->transfer, budget > 0 ? budget : DEFAULT_BUDGET);
}

static shuf_status run(struct shuffle *s)
{
    struct shuf__error *error = s->ranks.error;
    struct shuf__nccl_report *all = s->ranks.all;
    const unsigned world = (unsigned)s->ranks.world;
    if (shuf__nccl_gather(&s->ranks, &s->report) || shuf__nccl_check_arguments(all, world, error))
        return error->status;
    if (shuf__nccl_sum_inputs(all, world) == 0)
        return SHUF_OK;
    if (prepare(s))
        shuf__nccl_report_failure(error, &s->report);
    s->report.rounds = s->transfer.rounds;
    if (shuf__nccl_gather(&s->ranks, &s->report) || shuf__nccl_check_failures(all, world, error))
        return error->status;
    return shuf__nccl_transfer_run(&s->transfer, shuf__nccl_most_rounds(all, world));
}

static shuf_status open_and_run(struct shuffle *s)
{
    if (shuf__nccl_ranks_open(&s->ranks, s->transfer.stream) == SHUF_OK)
        run(s);
    shuf__nccl_transfer_end(&s->transfer);
    shuf__nccl_plan_end(&s->plan, s->handle, &s->ranks);
    shuf__nccl_ranks_close(&s->ranks);
    return s->ranks.error->status;
}

/* Reads the rank, the number of ranks and the device from the communicator. */
static shuf_status read_communicator(struct shuf__nccl_ranks *r)
{
    if (shuf__nccl_check(r, "ncclCommUserRank", ncclCommUserRank(r->comm, &r->rank)) ||
        shuf__nccl_check(r, "ncclCommCount", ncclCommCount(r->comm, &r->world)))
        return r->error->status;
    return shuf__nccl_check(r, "ncclCommCuDevice", ncclCommCuDevice(r->comm, &r->device));
}

/* Runs with the device of the communicator as the current one. */
static shuf_status run_on_device(struct shuffle *s)
{
    int before;
    struct shuf__nccl_ranks *r = &s->ranks;
    if (read_communicator(r) || shuf__nccl_check_cuda(r, "cudaGetDevice", cudaGetDevice(&before)) ||
        shuf__nccl_check_cuda(r, "cudaSetDevice", cudaSetDevice(r->device)))
        return r->error->status;
    const shuf_status status = open_and_run(s);
    cudaSetDevice(before);
    return status;
}

shuf_status shuf_nccl_shuffle(shuf *handle, struct ncclComm *comm, struct CUstream_st *stream,
                              const shuf_nccl_request *request, const void *input, void *output)
{
    last_error = (struct shuf__error){.status = SHUF_OK};
    if (!comm || !request)
        return shuf__fail(&last_error, SHUF_INVALID, "%s: NULL, expected a pointer",
                          comm ? "request" : "comm");
    struct shuffle s = {.handle = handle, .request = request};
    s.ranks = (struct shuf__nccl_ranks){
        .comm = comm, .timeout_ms = request->timeout_ms, .error = &last_error};
    s.transfer = (struct shuf__nccl_transfer){.ranks = &s.ranks,
                                              .plan = &s.plan,
                                              .input = input,
                                              .output = output,
                                              .stream = stream,
                                              .record = request->record};
    shuf__nccl_describe(request, input, output, &s.report);
    return run_on_device(&s);
}
