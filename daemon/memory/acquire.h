/* SPDX-License-Identifier: MIT
 *
 * Acquires memory for a request: an idle allocation, the warm block, or a new allocation. If there
 * is no room for a new one, idle allocations are evicted. All calls are on the loop's thread.
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
 * shuf__refuse_allocation(), or with SHUF__LATER (pool.h). The other policies set no error, so
 * `error` may be NULL. */
struct shuf__allocation *shuf__pool_acquire(struct shuf__pool *pool,
                                            const struct shuf__memory_request *request,
                                            enum shuf__acquire_policy policy,
                                            struct shuf__error *error);

/* The end of a job's `begin` that has failed with this error. Replaces SHUF__LATER by
 * SHUF_CANCELLED, because the job may be cancelled before it begins again. */
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

#endif
