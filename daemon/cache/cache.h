/* SPDX-License-Identifier: MIT
 *
 * All results: found again by what was asked, shared by reference counts. On the
 * loop's thread alone.
 *
 * Results that nobody refers to are at once the cache and the pool: they are found
 * by equal requests, and their allocations are what the next ones are computed into,
 * least recently used first. Nothing is shared between users, neither results nor
 * allocations: what a user leaves behind goes back to the system.
 */
#ifndef SHUFD_CACHE_H
#define SHUFD_CACHE_H

#include "backend.h"
#include "memory/allocations.h"
#include "request.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

/* What the memory of a result is for. */
enum shuf__role {
    SHUF__RESULT,     /* of its request; a buffer too */
    SHUF__RANK_INDEX, /* of counts (table.h): found by the jobs of its user */
    SHUF__WORKSPACE,  /* workspace.h */
};

/* Everything that decides a result's bytes, and whose it is. */
struct shuf__key {
    struct shuf__request request; /* TABLE: a LOOK_UP; WORKSPACE: none */
    uint32_t uid;
    enum shuf__memory kind;
    enum shuf__role role;
};

/* Whether equal keys share one result. The contents of shuffles, buffers and workspaces depend on
 * more than their key. */
static inline bool shuf__key_is_shared(const struct shuf__key *key)
{
    return key->role == SHUF__RANK_INDEX ||
           (key->role == SHUF__RESULT &&
            (key->request.kind == SHUF__PERMUTATION || key->request.kind == SHUF__STREAM));
}

static inline bool shuf__key_is_buffer(const struct shuf__key *key)
{
    return key->role == SHUF__RESULT && key->request.kind == SHUF__BUFFER;
}

enum { SHUF__EDGE = 4 }; /* values of head and of tail */

/* What is known of a result beside its values. */
struct shuf__summary {
    uint64_t device_ns, fingerprint;
    bool has_fingerprint, has_sums, has_edges;
    struct shuf__sums sums; /* of a stream */
    unsigned heads, tails;
    uint64_t head[SHUF__EDGE], tail[SHUF__EDGE]; /* bits */
};

struct shuf__work; /* compute.h */

struct shuf__cache_entry {
    struct shuf__key key; /* first: the table compares results by it */
    struct shuf__cache *all;
    struct shuf__allocation *allocation; /* NULL until its computation begins */
    uint64_t bytes;                      /* of its values */
    unsigned refs;
    bool found; /* in the table */
    bool ready; /* the values are there */
    struct shuf__summary summary;
    struct shuf__work *work;         /* the job for it that waits or runs, or NULL */
    struct shuf__cache_entry *input; /* of a shuffle: a reference, until it is ready or given up */

    struct shuf__size_class *size_class; /* while nobody refers to it */
    uint64_t idle_since_ms;
    TAILQ_ENTRY(shuf__cache_entry) lru, in_size_class;
};

TAILQ_HEAD(shuf__idle, shuf__cache_entry);

struct shuf__cache {
    struct shuf__allocations *allocations;
    uint64_t keep_ms;                    /* how long a result that nobody refers to is kept */
    struct shuf__idle idle[SHUF__POOLS]; /* lru first */
    LIST_HEAD(, shuf__size_class) size_classes;
    void *table; /* tsearch(3) */
    uv_timer_t trim;
    uint64_t idle_bytes;                      /* of allocations */
    uint64_t hits, joined, computed, evicted; /* for status */
};

void shuf__cache_init(struct shuf__cache *results, uv_loop_t *loop);

/* The result of that key, whether it is ready or being computed, or NULL. */
struct shuf__cache_entry *shuf__cache_find(struct shuf__cache *results,
                                           const struct shuf__key *key);

/* A new one of `bytes` bytes of values, with one reference and nothing computed; to be found by its
 * key, but for shuffles and buffers. NULL when memory is out. */
struct shuf__cache_entry *shuf__cache_add(struct shuf__cache *results, const struct shuf__key *key,
                                          uint64_t bytes);

/* Gives it a allocation where one lies ready, for no more than looking. */
bool shuf__cache_entry_reuse_allocation(struct shuf__cache_entry *result);

/* The same, even in place of a result that could still be found. */
bool shuf__cache_entry_reuse_any_allocation(struct shuf__cache_entry *result);

/* The same, or a new one within the budget, for which others that nobody refers to are given up
 * where needed. Fails as shuf__allocations_refuse() says. */
shuf_status shuf__cache_entry_take_allocation(struct shuf__cache_entry *result,
                                              struct shuf__error *error);

/* The same without giving up what somebody could still find; false where there is no room for it,
 * or no telling. */
bool shuf__cache_entry_wish_allocation(struct shuf__cache_entry *result);

/* Whether so many bytes of that kind could be had, by giving up what nobody refers to. Fails as
 * shuf__allocations_refuse() says. */
shuf_status shuf__cache_check_room(const struct shuf__cache *results, enum shuf__memory kind,
                                   uint64_t bytes, struct shuf__error *error);

/* The device had no memory for its allocation: gives up what nobody refers to. False when there was
 * nothing. The allocation is dropped. */
bool shuf__cache_entry_make_room(struct shuf__cache_entry *result);

struct shuf__cache_entry *shuf__cache_entry_ref(struct shuf__cache_entry *result);
void shuf__cache_entry_unref(struct shuf__cache_entry *result);

/* Its input is no longer needed, where it has one. */
void shuf__cache_entry_end_input(struct shuf__cache_entry *result);

/* It will not be what its key says: nobody is to find it. */
void shuf__cache_entry_hide(struct shuf__cache_entry *result);

/* The daemon ends: gives up all that nobody refers to. */
void shuf__cache_clear(struct shuf__cache *results);

#endif
