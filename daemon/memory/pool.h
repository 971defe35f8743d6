/* SPDX-License-Identifier: MIT
 *
 * Idle allocations, kept for reuse. An idle allocation may still have contents that the cache can
 * find; otherwise it is spare. Idle allocations stand in an LRU list for each side and in one free
 * list for each size class: user, kind of memory and size. Users never share memory: a block that
 * one user no longer needs goes back to the system before another user gets it. On the loop's
 * thread.
 */
#ifndef SHUFD_POOL_H
#define SHUFD_POOL_H

#include "allocations.h"

TAILQ_HEAD(shuf__idle_allocations, shuf__allocation);

struct shuf__pool {
    struct shuf__allocations *allocations;
    uint64_t keep_ms; /* how long an allocation stays idle before it is freed */
    struct shuf__idle_allocations lru[SHUF__SIDES]; /* least recently used first */
    LIST_HEAD(, shuf__size_class) sizes;            /* those that have idle allocations */
    uv_timer_t trim;
    uint64_t idle_bytes[SHUF__SIDES];
    uint64_t evicted; /* contents that were evicted for other requests or other programs */
    /* The contents of an idle allocation are lost. */
    void (*on_evict)(void *contents);
    /* An allocation has become idle. May be NULL. */
    void (*on_idle)(void *context, enum shuf__side side);
    void *idle_context;
};

void shuf__pool_init(struct shuf__pool *pool, uv_loop_t *loop);

/* Changes keep_ms, for the idle allocations too. */
void shuf__pool_set_keep(struct shuf__pool *pool, uint64_t keep_ms);

/* The memory that a caller needs. */
struct shuf__memory_request {
    uint32_t uid;
    enum shuf__memory kind;
    uint64_t bytes;
    bool buffer; /* a client fills it: never reused memory */
};

/* How far shuf__pool_acquire() may go. */
enum shuf__acquire_policy {
    SHUF__ACQUIRE_SPARE,    /* reuses a spare allocation, or the least recently used one of a full
                               class */
    SHUF__ACQUIRE_IDLE,     /* reuses an idle allocation, and evicts its contents */
    SHUF__ACQUIRE_OPTIONAL, /* reuses a spare one or allocates; frees only spare ones for that */
    SHUF__ACQUIRE_REQUIRED, /* the same, and evicts contents where needed */
};

/* An allocation for the request, or NULL. Only SHUF__ACQUIRE_REQUIRED sets *error then, as
 * shuf__allocations_refuse() does; `error` may be NULL for the others. */
struct shuf__allocation *shuf__pool_acquire(struct shuf__pool *pool,
                                            const struct shuf__memory_request *request,
                                            enum shuf__acquire_policy policy,
                                            struct shuf__error *error);

/* Whether SHUF__ACQUIRE_REQUIRED could allocate `bytes` bytes. Fails as shuf__allocations_refuse().
 */
shuf_status shuf__pool_check_room(const struct shuf__pool *pool, enum shuf__memory kind,
                                  uint64_t bytes, struct shuf__error *error);

/* The device had no memory for the allocation: drops it, and evicts idle allocations of its size.
 * False if there were none. */
bool shuf__pool_make_room(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* Keeps the allocation idle, and drops others, least recently used first, if idle_limit requires
 * it. `contents` is passed to on_evict(); NULL makes it spare. False when an idle allocation of its
 * size is not kept: it is still the caller's then. */
bool shuf__pool_keep(struct shuf__pool *pool, struct shuf__allocation *allocation, void *contents);

/* Ends the idleness of an allocation: its contents are in use again. */
void shuf__pool_take_back(struct shuf__pool *pool, struct shuf__allocation *allocation);

/* Idle allocations that were dropped. */
struct shuf__dropped {
    uint64_t results;            /* contents */
    uint64_t bytes[SHUF__SIDES]; /* that no process has mapped: freed now */
    uint64_t mapped;             /* bytes that are freed when no process has them mapped */
};

/* Drops the idle allocations of one user, or of all users. */
struct shuf__dropped shuf__pool_drop(struct shuf__pool *pool, bool all, uint32_t uid);

/* Other programs need memory: drops allocations that no process has mapped, least recently used
 * first, until the system gets `bytes` bytes back or none is left. Adds to *dropped. */
void shuf__pool_give_back(struct shuf__pool *pool, enum shuf__side side, uint64_t bytes,
                          struct shuf__dropped *dropped);

/* The limits have changed: drops idle allocations that exceed them. */
void shuf__pool_hold_to_limits(struct shuf__pool *pool);

/* The daemon ends: drops all idle allocations. */
void shuf__pool_clear(struct shuf__pool *pool);

#endif
