/* SPDX-License-Identifier: MIT
 *
 * Memory for a request: an idle allocation, the warm block, or a new allocation, for which others
 * are evicted. On the loop's thread.
 */
#ifndef SHUFD_ACQUIRE_H
#define SHUFD_ACQUIRE_H

#include "pool.h"

/* The memory that a caller needs. */
struct shuf__memory_request {
    uint32_t uid;
    enum shuf__memory kind;
    uint64_t bytes;
    bool buffer; /* a client fills it: never reused memory */
};

/* What shuf__pool_acquire() may do to get an allocation. */
enum shuf__acquire_policy {
    SHUF__ACQUIRE_SPARE,    /* reuses a spare allocation, or the least recently used one of a full
                               class */
    SHUF__ACQUIRE_IDLE,     /* reuses an idle allocation, and evicts its contents */
    SHUF__ACQUIRE_OPTIONAL, /* reuses a spare allocation or makes one; frees only spare
                             * ones for it */
    SHUF__ACQUIRE_REQUIRED, /* the same, and evicts contents where needed */
};

/* An allocation for the request, or NULL. Only SHUF__ACQUIRE_REQUIRED sets *error then, as
 * shuf__refuse_allocation() does; `error` may be NULL for the others. */
struct shuf__allocation *shuf__pool_acquire(struct shuf__pool *pool,
                                            const struct shuf__memory_request *request,
                                            enum shuf__acquire_policy policy,
                                            struct shuf__error *error);

/* Whether SHUF__ACQUIRE_REQUIRED could allocate. Fails as shuf__refuse_allocation(). */
shuf_status shuf__pool_check_room(struct shuf__pool *pool,
                                  const struct shuf__memory_request *request,
                                  struct shuf__error *error);

/* The device had no memory for the allocation: drops it, and evicts idle allocations of its size.
 * False if there were none. */
bool shuf__pool_make_room(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* The limits have changed: drops idle allocations that exceed them. */
void shuf__pool_hold_to_limits(struct shuf__pool *pool);

#endif
