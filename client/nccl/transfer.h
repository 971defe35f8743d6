/* SPDX-License-Identifier: MIT
 *
 * The exchange by a plan, in rounds. While NCCL sends the records of one round, the GPU gathers
 * those of the next, and puts those of the round before in their places.
 */
#ifndef SHUF__NCCL_TRANSFER_H
#define SHUF__NCCL_TRANSFER_H

#include "plan.h"

struct shuf__nccl_transfer {
    struct shuf__nccl_ranks *ranks;
    struct shuf__nccl_plan *plan;
    const void *input;
    void *output;
    cudaStream_t stream; /* of the caller: it gathers and scatters */
    uint64_t record, rounds;
    /* One allocation: the segments of the plan, then two buffers that are sent and two that are
     * received. The rounds take turns. */
    char *memory, *sent[2], *received[2];
    cudaEvent_t moved;        /* the last work in `stream` */
    cudaEvent_t exchanged[2]; /* the exchanges that use these buffers */
};

/* Allocates memory within the budget, and sets the number of rounds that this rank needs. After a
 * failure, too, the caller ends it with shuf__nccl_transfer_end(). */
shuf_status shuf__nccl_transfer_prepare(struct shuf__nccl_transfer *transfer, uint64_t budget);

/* Moves all records in as many rounds. All ranks have the same number, and none needs more. Returns
 * when the output is complete. */
shuf_status shuf__nccl_transfer_run(struct shuf__nccl_transfer *transfer, uint64_t rounds);

/* Waits until the GPU does not read the plan any more. */
void shuf__nccl_transfer_end(struct shuf__nccl_transfer *transfer);

#endif
