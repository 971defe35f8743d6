/* SPDX-License-Identifier: MIT
 *
 * Workspaces: scratch memory that a job needs besides its result and its input. A workspace is an
 * allocation of the job's user, within the budget. After the job it is idle, and the user's next
 * job can use it.
 */
#ifndef SHUFD_WORKSPACE_H
#define SHUFD_WORKSPACE_H

#include "acquire.h"

/* A job's memory. */
struct shuf__job_memory {
    struct shuf__memory_request result;
    struct shuf__workspace workspace;     /* the answer of ops->workspace() */
    const struct shuf__allocation *input; /* NULL: none */
};

/* Fails with SHUF_NO_MEMORY if result, input and the smallest workspace would not fit even if
 * nothing else were in use. */
shuf_status shuf__workspace_check_fit(const struct shuf__pool *pool,
                                      const struct shuf__job_memory *memory,
                                      struct shuf__error *error);

/* Call when the job starts. Checks that there is room for the smallest workspace and, if *result is
 * NULL, for the result. If there is no room for both, but the result can reuse an idle allocation,
 * sets *result to it. Fails with the error of shuf__refuse_allocation(). */
shuf_status shuf__workspace_check_room(struct shuf__pool *pool,
                                       const struct shuf__job_memory *memory,
                                       struct shuf__allocation **result, struct shuf__error *error);

struct shuf__held_workspace {
    struct shuf__allocation *allocation; /* NULL: none */
    uint64_t bytes;                      /* bytes of it that the job uses */
};

/* Call next, when the result has its allocation. Acquires a workspace of the best size. If there is
 * no room, or if `sparing`, acquires one of the smallest size. If the smallest size is 0, the call
 * succeeds without an allocation. Fails with the error of shuf__refuse_allocation(). */
shuf_status shuf__workspace_acquire(struct shuf__pool *pool, const struct shuf__job_memory *memory,
                                    bool sparing, struct shuf__held_workspace *workspace,
                                    struct shuf__error *error);

/* Call on a lane's thread. Allocates the block. Sets *block to NULL if there is no workspace. Also
 * sets it to NULL if the device has no memory but the job can run without a workspace. */
shuf_status shuf__workspace_open(const struct shuf__held_workspace *workspace,
                                 const struct shuf__workspace *needs, struct shuf__backend *backend,
                                 const struct shuf__block **block, struct shuf__error *error);

/* Call on the loop's thread when the job is over. `done`: the job has written all bytes of the
 * workspace. Does nothing if there is no allocation. */
void shuf__workspace_release(struct shuf__pool *pool, struct shuf__held_workspace *workspace,
                             bool done);

#endif
