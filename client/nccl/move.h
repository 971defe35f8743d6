/* SPDX-License-Identifier: MIT
 *
 * The kernel that moves records between the arrays of a rank and the buffers of a round.
 */
#ifndef SHUF__NCCL_MOVE_H
#define SHUF__NCCL_MOVE_H

#include "rounds.h"

#include <cuda_runtime.h>

/* For each segment, the slice of the round. A list gives the number of a record; without a list,
 * record k is number k. A slice begins later in a list in each round, but always at the same place
 * of a buffer, which has no list. */
struct shuf__nccl_move {
    const void *in, *in_list; /* the lists have numbers of `width` bytes, 4 or 8, or are NULL */
    void *out;
    const void *out_list;
    unsigned width, segment_count;
    const struct shuf__nccl_segment *segments; /* in device memory */
    uint64_t most;                             /* records of the longest slice */
    uint64_t record;                           /* bytes */
    uint64_t round, rounds;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the move. Arrays, lists and segments must stay until `stream` has done it. */
cudaError_t shuf__nccl_move(const struct shuf__nccl_move *move, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
