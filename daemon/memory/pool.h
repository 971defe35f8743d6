/* SPDX-License-Identifier: MIT
 *
 * Idle allocations, kept for reuse. An idle allocation has contents if requests can still find its
 * result in the cache. Otherwise it is spare. Each side has an LRU list of its idle allocations,
 * and so has each size class. A size class is one user, one kind of memory and one size. Users
 * never share memory: a block goes back to the system before another user gets it. All calls are on
 * the loop's thread.
 *
 * A side may have a warm block (warm.h): memory that no user has had yet, for a result of more than
 * half its size. One idle allocation of that size does not count against the limit of idle bytes.
 */
#ifndef SHUFD_POOL_H
#define SHUFD_POOL_H

#include "allocations.h"

TAILQ_HEAD(shuf__idle_allocations, shuf__allocation);

struct shuf__size_class {
    uint32_t uid, kind;
    uint64_t size;
    unsigned count;                     /* the search tree compares the fields above this one */
    struct shuf__idle_allocations idle; /* least recently used first */
};

struct shuf__pool {
    struct shuf__allocations *allocations;
    uint64_t keep_ms; /* how long an allocation stays idle before it is freed */
    struct shuf__idle_allocations lru[SHUF__SIDES]; /* least recently used first */
    void *sizes; /* tsearch(3): the classes that have idle allocations */
    unsigned idle_count[SHUF__SIDES];
    struct shuf__reading mapped_reading; /* walks that ask the kernel which blocks are mapped */
    uv_timer_t trim;
    uint64_t idle_bytes[SHUF__SIDES];           /* includes the warm blocks */
    unsigned warm_sized[SHUF__SIDES];           /* idle allocations of the warm block's size */
    struct shuf__allocation *warm[SHUF__SIDES]; /* NULL: none */
    uint64_t evicted; /* contents that were evicted for other requests or other programs */
    /* Called when the contents of an idle allocation are lost. */
    void (*on_evict)(void *contents);
    /* Called when an allocation becomes idle. May be NULL. */
    void (*on_idle)(void *context, enum shuf__side side);
    void *idle_context;
    /* Stops making the warm block of that side, and ends its charge. False if none is being made.
     * May be NULL. */
    bool (*abandon_warm)(void *context, enum shuf__side side);
    void *warm_context;
    /* The bytes of the results on that side that clients read slowly. If `only` is not NULL, counts
     * only the clients of that user. May be NULL. */
    uint64_t (*slow_reader_bytes)(void *context, enum shuf__side side, const uint32_t *only);
    /* Ends the use of such a result by the slowest client. False if there is none. */
    bool (*cut_off_reader)(void *context, enum shuf__side side);
    void *reader_context;
};

void shuf__pool_init(struct shuf__pool *pool, uv_loop_t *loop);

/* Changes keep_ms, also for allocations that are idle already. */
void shuf__pool_set_keep(struct shuf__pool *pool, uint64_t keep_ms);

/* Keeps the allocation idle. If the idle bytes then exceed idle_limit, drops the least recently
 * used allocations. `contents` is passed to on_evict(); NULL makes the allocation spare. False: the
 * pool does not keep an allocation of this size, and it still belongs to the caller. */
bool shuf__pool_keep(struct shuf__pool *pool, struct shuf__allocation *allocation, void *contents);

/* Whether the pool would drop this idle allocation to keep one more of `bytes` bytes. */
bool shuf__pool_would_drop(const struct shuf__pool *pool, const struct shuf__allocation *allocation,
                           uint64_t bytes);

/* Adds the warm block of its side, which must not have one. */
void shuf__pool_add_warm(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* Drops the warm block of the side. False if there is none. */
bool shuf__pool_drop_warm(struct shuf__pool *pool, enum shuf__side side);

/* Takes an allocation out of the pool, because a request uses its contents again. */
void shuf__pool_remove(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* The class of idle allocations of that user, kind and size; NULL: there are none. */
struct shuf__size_class *shuf__pool_find_class(const struct shuf__pool *pool, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size);

/* Evicts the contents of an idle allocation, which then belongs to the caller. */
void shuf__pool_end_contents(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* Evicts the contents of an idle allocation, and drops the allocation. */
void shuf__pool_evict(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* Takes the warm block of a side that has one. The block then belongs to the caller. */
struct shuf__allocation *shuf__pool_take_warm(struct shuf__pool *pool, enum shuf__side side);

/* Counts of dropped idle allocations. */
struct shuf__dropped {
    uint64_t unmapped;           /* allocations that no process had mapped */
    uint64_t results;            /* allocations with contents */
    uint64_t bytes[SHUF__SIDES]; /* bytes that are freed now */
    uint64_t mapped;             /* bytes that are freed later, when no process has them mapped */
};

/* Drops the idle allocations of one user, or of all users. */
struct shuf__dropped shuf__pool_drop(struct shuf__pool *pool, bool all, uint32_t uid);

/* Call when other programs need memory. Drops idle allocations that no process has mapped, least
 * recently used first, until the system gets `bytes` bytes back or none is left. Adds to *dropped.
 */
void shuf__pool_shrink(struct shuf__pool *pool, enum shuf__side side, uint64_t bytes,
                       struct shuf__dropped *dropped);

/* Drops idle allocations until the side is within its limit of idle bytes. */
void shuf__pool_hold_to_limit(struct shuf__pool *pool, enum shuf__side side);

/* Call when the daemon ends. Drops all idle allocations. */
void shuf__pool_clear(struct shuf__pool *pool);

#endif
