/* SPDX-License-Identifier: MIT
 *
 * Memory of results, and who may see it: a allocation is one block, charged to a budget
 * and to its user from before it is allocated until it is back with the system,
 * which is not before nobody can have it mapped any more. On the loop's thread.
 */
#ifndef SHUFD_ALLOCATIONS_H
#define SHUFD_ALLOCATIONS_H

#include "engine/engine.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__mapping; /* client_process.h: a process that may have the block mapped */

struct shuf__allocation {
    struct shuf__allocations *all;
    struct shuf__block block; /* its memory comes with the first job */
    uint64_t id;              /* the block's, never used again */
    uint64_t bytes;           /* charged */
    uint64_t committed; /* of these: known to have memory behind them, see allocation_commit */
    uint32_t uid;
    enum shuf__memory kind;
    bool buffer;    /* a client writes to it, when it likes, */
    bool open;      /* from now on */
    bool lingering; /* dropped, and still mapped by somebody */
    bool untracked; /* host memory that was given to a process which has hung up */
    LIST_HEAD(, shuf__mapping) mappings;
    unsigned detached; /* processes that may have it without a connection, so that they cannot be
                        told that the block is another result's now */
    LIST_ENTRY(shuf__allocation) link;
    TAILQ_ENTRY(shuf__allocation) pending_free_link;
    struct shuf__engine_job release;
};

/* Bytes of allocations in one kind of memory. */
struct shuf__budget {
    uint64_t configured; /* 0: what the device has, less a reserve */
    uint64_t used, limit;
    uint64_t most; /* that the limit could ever be */
    /* What is charged and what the system has given are not the same: */
    uint64_t uncommitted; /* in `used`, and still counted as available by the system */
    uint64_t releasing;   /* no longer in `used`, and not yet counted as available */
};

enum shuf__pool { SHUF__POOL_HOST, SHUF__POOL_DEVICE, SHUF__POOLS };

struct shuf__allocations {
    struct shuf__engine *engine;
    struct shuf__budget budgets[SHUF__POOLS];
    LIST_HEAD(, shuf__allocation) list; /* all */
    TAILQ_HEAD(shuf__pending_free, shuf__allocation)
    lingering;       /* of these, what lingers; the next to be looked at first */
    uv_timer_t look; /* at what lingers */
    uint64_t last_id, count, pending_free_count;
    uint64_t buffers; /* of these allocations */
    uint64_t most;    /* allocations: each may have a descriptor */
};

void shuf__allocations_init(struct shuf__allocations *allocations, uv_loop_t *loop);

enum shuf__pool shuf__pool_of(enum shuf__memory kind);

/* Brings the limit of that kind of memory up to date. */
shuf_status shuf__allocations_measure(struct shuf__allocations *allocations, enum shuf__memory kind,
                                      struct shuf__error *error);

/* How large a allocation is made for so many bytes: some more, so that it serves for others of
 * about the size, as long as that is within the limit. */
uint64_t shuf__allocations_size(const struct shuf__allocations *allocations, enum shuf__memory kind,
                                uint64_t bytes);

/* The smallest for so many. */
uint64_t shuf__allocations_least_size(uint64_t bytes);

/* Within the budget, and the number of allocations. */
bool shuf__allocations_fit(const struct shuf__allocations *allocations, enum shuf__memory kind,
                           uint64_t size);

/* SHUF_NO_MEMORY where so much would not fit if nobody had anything but so many bytes beside it. */
shuf_status shuf__allocations_could_fit(const struct shuf__allocations *allocations,
                                        enum shuf__memory kind, uint64_t bytes, uint64_t beside,
                                        struct shuf__error *error);

/* Why it does not fit: SHUF_NO_MEMORY where it never could, SHUF_BUSY where others are in its way;
 * both name bytes asked, in use and allowed. */
shuf_status shuf__allocations_refuse(const struct shuf__allocations *allocations,
                                     enum shuf__memory kind, uint64_t size,
                                     struct shuf__error *error);

/* Charges it; block.memory is NULL until a job allocates it. NULL when memory is out. */
struct shuf__allocation *shuf__allocation_make(struct shuf__allocations *allocations, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size, bool buffer);

/* The system has given memory for the first `bytes` of it: of device memory all with the block, of
 * host memory what has been written to. */
void shuf__allocation_commit(struct shuf__allocation *allocation, uint64_t bytes);

/* A buffer has its memory and its client: of host memory the system tells what is written to. */
void shuf__allocation_open(struct shuf__allocation *allocation);

/* Nobody computes into it any more. It goes back to the system, now or when it can. */
void shuf__allocation_drop(struct shuf__allocation *allocation);

/* Nobody can have it mapped: dropping it frees it at once. */
bool shuf__allocation_is_unmapped(const struct shuf__allocation *allocation);

/* Nobody sees it but those who are told when it becomes another result's. */
bool shuf__allocation_is_rewritable(struct shuf__allocation *allocation);

/* A process no longer has it mapped: does what there is to do if that was the last one. */
void shuf__allocation_was_unmapped(struct shuf__allocation *allocation);

/* Looks now whether any that lingers is unmapped. */
void shuf__allocations_sweep(struct shuf__allocations *allocations);

/* The daemon ends, and all are dropped: what is still mapped is left to those who have it. */
void shuf__allocations_abandon(struct shuf__allocations *allocations);

#endif
