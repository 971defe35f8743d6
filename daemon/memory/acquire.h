/* SPDX-License-Identifier: MIT
 *
 * Acquires the memory of a job, for its result and its scratch memory (workspace): an idle
 * allocation, the warm block, or a new allocation. If there is no room for a new one, idle
 * allocations are evicted. Call the functions on the loop's thread, except shuf__workspace_open().
 */
#ifndef SHUFD_ACQUIRE_H
#define SHUFD_ACQUIRE_H

#include "pool.h"

/* The memory that a caller needs. */
struct shuf__memory_request {
    uint32_t uid;
    enum shuf__memory kind;
    uint64_t bytes;
    bool buffer; /* a client fills it, so it never gets reused memory */
};

/* The means by which shuf__pool_acquire() may get an allocation. */
enum shuf__acquire_policy {
    /* Reuse a spare allocation, or the least recently used one of a full size class; or take the
     * warm block. A class is full if it has more than 64 allocations, or at least two with more
     * than 128 MiB together. Also reuse the allocation that the pool would drop for one more. */
    SHUF__ACQUIRE_SPARE,
    SHUF__ACQUIRE_IDLE,     /* reuse an idle allocation, and evict its contents; or take the warm
                             * block */
    SHUF__ACQUIRE_OPTIONAL, /* like SPARE, or make an allocation; to make room, drop only spare
                             * allocations and the warm block */
    SHUF__ACQUIRE_REQUIRED, /* like OPTIONAL; to make room, also evict results */
};

/* An allocation for the request, or NULL. SHUF__ACQUIRE_REQUIRED fails with the error of
 * shuf__refuse_allocation(), or with SHUF_CANCELLED while the memory of earlier results is being
 * freed. The other policies set no error, so `error` may be NULL. */
struct shuf__allocation *shuf__pool_acquire(struct shuf__pool *pool,
                                            const struct shuf__memory_request *request,
                                            enum shuf__acquire_policy policy,
                                            struct shuf__error *error);

/* The end of a job's `begin` that has failed with this error. After SHUF_CANCELLED the job begins
 * again later. */
enum shuf__begin shuf__pool_fail_begin(struct shuf__error *error);

/* Checks whether SHUF__ACQUIRE_REQUIRED could allocate. Fails with the error of
 * shuf__refuse_allocation(). */
shuf_status shuf__pool_check_room(struct shuf__pool *pool,
                                  const struct shuf__memory_request *request,
                                  struct shuf__error *error);

/* False: there is no room, even if all idle allocations made room. Changes nothing. */
bool shuf__pool_may_have_room(struct shuf__pool *pool, const struct shuf__memory_request *request);

/* Call if the device had no memory for the allocation. Drops it, and evicts idle allocations to
 * make room for its size. False: there were none. */
bool shuf__pool_make_room(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* Call after the limits have changed. Drops the idle allocations that exceed them. */
void shuf__pool_hold_to_limits(struct shuf__pool *pool);

/* ---- Workspaces ---- */

/* Scratch memory that a job needs besides its result and its input. A workspace is an allocation
 * of the job's user, within the budget. After the job it is idle, and the user's next job can use
 * it. */

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
