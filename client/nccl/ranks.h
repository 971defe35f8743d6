/* SPDX-License-Identifier: MIT
 *
 * The communicator of the caller, with a CUDA stream for the work of NCCL. All waits for other
 * ranks are here. They watch the communicator and the clock, so a rank that ends stops no other.
 */
#ifndef SHUF__NCCL_RANKS_H
#define SHUF__NCCL_RANKS_H

#include "agreement.h"
#include "rounds.h"

#include <cuda_runtime.h>
#include <nccl.h>

struct shuf__nccl_ranks {
    ncclComm_t comm;
    int rank, world, device;
    uint64_t timeout_ms;             /* 0: none */
    cudaStream_t stream;             /* of NCCL; begins after the earlier work of the caller */
    cudaEvent_t gathered;            /* the reports of all ranks have arrived */
    struct shuf__nccl_report *there; /* a report of each rank, in device memory */
    struct shuf__nccl_report *all;   /* the same in host memory */
    struct shuf__error *error;       /* of the call */
};

/* Prepares the work of this rank on the current device. After a failure, too, the caller ends it
 * with shuf__nccl_ranks_close(). */
shuf_status shuf__nccl_ranks_open(struct shuf__nccl_ranks *ranks, cudaStream_t after);
void shuf__nccl_ranks_close(struct shuf__nccl_ranks *ranks);

/* Sends the report of this rank to all others, and fills `all`. */
shuf_status shuf__nccl_gather(struct shuf__nccl_ranks *ranks,
                              const struct shuf__nccl_report *report);

/* The buffers of a round: `leaving` describes the records in `sent`, at `to`, and `coming` the
 * records in `received`, at `from`. */
struct shuf__nccl_round {
    const char *sent;
    char *received;
    const struct shuf__nccl_segment *leaving, *coming; /* one for each rank */
    uint64_t record, round, rounds;
};

/* Starts the exchange of a round in the stream of NCCL. */
shuf_status shuf__nccl_send_round(struct shuf__nccl_ranks *ranks,
                                  const struct shuf__nccl_round *round);

/* Waits for work of the stream of NCCL. Fails with SHUF_IO or SHUF_TIMEOUT. */
shuf_status shuf__nccl_wait(struct shuf__nccl_ranks *ranks, cudaEvent_t event);

/* SHUF_OK for success, else fails with SHUF_IO, SHUF_DEVICE or SHUF_NO_MEMORY. `call` names the
 * function that returned the result. */
shuf_status shuf__nccl_check(struct shuf__nccl_ranks *ranks, const char *call, ncclResult_t result);
shuf_status shuf__nccl_check_cuda(struct shuf__nccl_ranks *ranks, const char *call,
                                  cudaError_t result);

/* Makes an event, and allocates and frees device memory. The driver frees it after the work of the
 * stream of NCCL; the host does not wait. */
shuf_status shuf__nccl_make_event(struct shuf__nccl_ranks *ranks, cudaEvent_t *event);
shuf_status shuf__nccl_allocate(struct shuf__nccl_ranks *ranks, void **memory, uint64_t bytes);
void shuf__nccl_free(struct shuf__nccl_ranks *ranks, void *memory);

#endif
