/* SPDX-License-Identifier: MIT
 *
 * Blocks of memory and their budgets. An allocation is one block. Its bytes are charged to a budget
 * and to its user from before the block is allocated until the system has it back, which is not
 * before every process has unmapped it. On the loop's thread.
 */
#ifndef SHUFD_ALLOCATIONS_H
#define SHUFD_ALLOCATIONS_H

#include "amount.h"
#include "engine/engine.h"
#include "ids.h"
#include "inode_watch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__process_mapping; /* client_process.h: a process that may have the block mapped */
struct shuf__size_class;      /* pool.h */

struct shuf__allocation {
    struct shuf__allocations *all;
    struct shuf__block block; /* the first job allocates its memory */
    uint64_t id;              /* of the block, for clients; never used again */
    uint64_t number;          /* of blocks so far */
    uint64_t bytes;           /* charged */
    uint64_t committed;       /* of these: known to have memory behind them */
    uint32_t uid;
    enum shuf__memory kind;
    bool buffer;          /* a client writes to it */
    bool client_writable; /* the client may have written to it already */
    bool pending_free;    /* unused, but still mapped by some process */
    bool was_shared;      /* some process got a descriptor of it */
    bool untracked;       /* host memory that a process without a connection may have mapped */
    LIST_HEAD(, shuf__process_mapping) mappings;
    /* Mappings by detached processes: the daemon cannot notify these that the block has new
     * contents. */
    unsigned detached;
    LIST_ENTRY(shuf__allocation) link;
    TAILQ_ENTRY(shuf__allocation) pending_free_link;
    struct shuf__inode_watch watch; /* of freed host memory that some process may have kept */
    struct shuf__engine_job free_job;
    uv_work_t free_work; /* frees it on a worker thread instead */

    /* Fields of an idle allocation, private to the pool (pool.h). */
    struct shuf__size_class *size_class; /* NULL: in use */
    void *contents;                      /* NULL: spare */
    bool is_warm_sized;                  /* has the size of its side's warm block */
    uint64_t idle_since_ms;
    TAILQ_ENTRY(shuf__allocation) in_lru, in_size_class;
};

/* The bytes of allocations in host or in device memory. */
struct shuf__budget {
    struct shuf__amount configured;      /* of `max_limit` */
    struct shuf__amount configured_idle; /* of `idle_limit` */
    struct shuf__amount configured_pool; /* of `warm_size` */
    uint64_t sharers; /* daemons that divide this memory: percentages are of their shares */
    uint64_t used;
    uint64_t max_limit;        /* of `used` */
    uint64_t limit;            /* max_limit, or less when other programs use the memory */
    uint64_t idle_limit;       /* of idle bytes (pool.h) */
    uint64_t available, total; /* of the machine or the GPU, when it was measured last */
    uint64_t warm_size;        /* of the block that is kept ready (warm.h); 0: none */
    /* The system commits memory later than it is charged, and takes it back later: */
    uint64_t uncommitted; /* in `used`, but the system still counts them as available */
    uint64_t releasing;   /* no longer in `used`, but the system does not count them as available */
};

enum { SHUF__NO_USER = UINT32_MAX }; /* has the memory that no user has had yet */

enum shuf__side { SHUF__SIDE_HOST, SHUF__SIDE_DEVICE, SHUF__SIDES };

TAILQ_HEAD(shuf__pending_free, shuf__allocation);

struct shuf__allocations {
    struct shuf__engine *engine;
    struct shuf__budget budgets[SHUF__SIDES];
    LIST_HEAD(, shuf__allocation) list;     /* all */
    struct shuf__pending_free pending_free; /* the next to be checked first */
    uv_loop_t *loop;
    uv_timer_t sweep; /* of these */
    struct shuf__ids ids;
    uint64_t count, pending_free_count;
    uint64_t buffers;   /* of `count` */
    uint64_t shortages; /* the times that memory was short: clients unmap what they can */
    uint64_t max_count; /* limit of `count`: each may need a descriptor */
    /* For messages: the configuration file, and the program that started this one, or NULL or "";
     * the sides whose limit is an option of the command line. */
    const char *config_file, *starter;
    bool has_option[SHUF__SIDES];
    /* Blocks that libuv's worker threads free or touch; the backend must stay open. */
    uint64_t worker_blocks;
    void (*workers_done)(struct shuf__allocations *allocations); /* no such block is left */
    struct shuf__inode_watches watches;
    bool abandoned; /* the daemon ends: it counts nothing any more */
    /* Called before an allocation is freed, to forget its mappings. */
    void (*on_free)(struct shuf__allocation *allocation);
};

void shuf__allocations_init(struct shuf__allocations *allocations, uv_loop_t *loop);

enum shuf__side shuf__side_of(enum shuf__memory kind);

/* Updates the limits of that side's budget. */
shuf_status shuf__allocations_measure(struct shuf__allocations *allocations, enum shuf__memory kind,
                                      struct shuf__error *error);

/* The size of an allocation for `bytes` bytes: rounded up, within the limit, so that the block can
 * be reused for results of similar size. */
uint64_t shuf__allocations_size(const struct shuf__allocations *allocations, enum shuf__memory kind,
                                uint64_t bytes);

/* The smallest size for `bytes` bytes. */
uint64_t shuf__allocations_least_size(enum shuf__memory kind, uint64_t bytes);

/* Whether one more of that size is within the budget and the limit of their number. */
bool shuf__allocations_fit(const struct shuf__allocations *allocations, enum shuf__memory kind,
                           uint64_t size);

/* Charges the budget. block.memory is NULL until a job allocates it. NULL when out of memory. */
struct shuf__allocation *shuf__allocation_make(struct shuf__allocations *allocations, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size, bool buffer);

/* The system has committed memory for at least the first `bytes` bytes: all bytes of a device
 * block, the written bytes of a host block. */
void shuf__allocation_commit(struct shuf__allocation *allocation, uint64_t bytes);

/* The client of a buffer may write to it from now on. Host memory: asks the system for the bytes
 * that are committed. */
void shuf__allocation_set_client_writable(struct shuf__allocation *allocation);

/* No job uses it any more. Frees it now, or when every process has unmapped it. */
void shuf__allocation_drop(struct shuf__allocation *allocation);

/* Ends the charge of an allocation whose memory a worker thread is still writing to. Later
 * shuf__allocation_free_on_worker() frees its host memory. */
void shuf__allocation_end_charge(struct shuf__allocation *allocation);
void shuf__allocation_free_on_worker(struct shuf__allocation *allocation);

/* Drops an allocation of host memory that no process had mapped a moment ago: a process may open it
 * again by an O_PATH descriptor. A worker thread frees it, because the engine may be busy for long.
 */
void shuf__allocation_drop_on_worker(struct shuf__allocation *allocation);

/* No process can have it mapped: dropping it frees it at once. */
bool shuf__allocation_is_unmapped(const struct shuf__allocation *allocation);

/* Every process that may have it mapped learns when its contents change. */
bool shuf__allocation_is_rewritable(struct shuf__allocation *allocation);

/* A process has unmapped it: frees it if it is pending and that was the last process. */
void shuf__allocation_free_if_unmapped(struct shuf__allocation *allocation);

/* Frees pending allocations that every process has unmapped. */
void shuf__allocations_sweep(struct shuf__allocations *allocations);

/* The daemon ends and all are dropped: leaves mapped blocks to the processes that have them. */
void shuf__allocations_abandon(struct shuf__allocations *allocations);

#endif
