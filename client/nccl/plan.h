/* SPDX-License-Identifier: MIT
 *
 * The plan of a rank: its lists in the memory of the GPU, and its counts as segments.
 */
#ifndef SHUF__NCCL_PLAN_H
#define SHUF__NCCL_PLAN_H

#include "ranks.h"

struct shuf__nccl_plan {
    shuf_lease *lease;
    void *copy;                 /* of the plan in device memory, if the lease is in host memory */
    const void *order, *places; /* lists of numbers of `width` bytes */
    unsigned width;
    /* The records for and from each rank. `leaving` has places of `order` in `from`, and `coming`
     * has places of `places` in `to`. The records that stay on this rank are only in `own`, which
     * has both. The three parts are one array. */
    struct shuf__nccl_segment *leaving, *coming, *own;
};

/* Takes the plan for the arguments of all ranks, which ranks->all has. After a failure, too, the
 * caller ends it with shuf__nccl_plan_end(). */
shuf_status shuf__nccl_plan_take(struct shuf__nccl_plan *plan, shuf *handle,
                                 struct shuf__nccl_ranks *ranks, const shuf_nccl_request *request);

/* The GPU must not read the lists any more. */
void shuf__nccl_plan_end(struct shuf__nccl_plan *plan, shuf *handle,
                         struct shuf__nccl_ranks *ranks);

/* The number of segments in the array that begins with `leaving`. */
static inline unsigned shuf__nccl_segment_count(const struct shuf__nccl_ranks *ranks)
{
    return 2 * (unsigned)ranks->world + 1;
}

#endif
