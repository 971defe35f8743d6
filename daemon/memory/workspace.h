/* SPDX-License-Identifier: MIT
 *
 * The memory that a job works in beside its result and its input. A workspace is an allocation of
 * the job's user, within the budget. After the job it is idle, and serves as the workspace of the
 * user's next job.
 */
#ifndef SHUFD_WORKSPACE_H
#define SHUFD_WORKSPACE_H

#include "acquire.h"

/* A job's memory. */
struct shuf__job_memory {
    struct shuf__memory_request result;
    struct shuf__workspace workspace;     /* as ops->workspace() says */
    const struct shuf__allocation *input; /* NULL: none */
};

/* Fails with SHUF_NO_MEMORY if result, input and the least workspace could not fit even with
 * nothing else in use. */
shuf_status shuf__workspace_check_fit(const struct shuf__pool *pool,
                                      const struct shuf__job_memory *memory,
                                      struct shuf__error *error);

/* When the job starts: checks that there is room for the result, if *result is NULL, and for the
 * least workspace. Sets *result to an idle allocation if both fit only then. Fails as
 * shuf__refuse_allocation(). */
shuf_status shuf__workspace_check_room(struct shuf__pool *pool,
                                       const struct shuf__job_memory *memory,
                                       struct shuf__allocation **result, struct shuf__error *error);

struct shuf__held_workspace {
    struct shuf__allocation *allocation; /* NULL: none */
    uint64_t bytes;                      /* that the job uses of it */
};

/* Then, when the result has its allocation: acquires the workspace. The best size is optional, and
 * not tried if `sparing`; the least size is required. Without an allocation on success the job
 * needs none. Fails as shuf__refuse_allocation(). */
shuf_status shuf__workspace_acquire(struct shuf__pool *pool, const struct shuf__job_memory *memory,
                                    bool sparing, struct shuf__held_workspace *workspace,
                                    struct shuf__error *error);

/* On a lane's thread: allocates the block. *block is NULL without a workspace, and if the
 * device has no memory and the job can do without a workspace. */
shuf_status shuf__workspace_open(const struct shuf__held_workspace *workspace,
                                 const struct shuf__workspace *needs, struct shuf__backend *backend,
                                 const struct shuf__block **block, struct shuf__error *error);

/* On the loop's thread, when the job is over; `done`: it has written all bytes. Does nothing
 * without an allocation. */
void shuf__workspace_release(struct shuf__pool *pool, struct shuf__held_workspace *workspace,
                             bool done);

#endif
