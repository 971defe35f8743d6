/* SPDX-License-Identifier: MIT
 *
 * Blocks of memory and their budgets. An allocation is one block with its charge: its bytes count
 * for a budget and for its user. The charge begins before the block is allocated. It ends when no
 * process has the block mapped any more, just before the block is freed. All calls are on the
 * loop's thread.
 */
#ifndef SHUFD_ALLOCATIONS_H
#define SHUFD_ALLOCATIONS_H

#include "accounts.h"
#include "engine/engines.h"
#include "inode_watch.h"
#include "number.h"
#include "reading.h"
#include "shuf/philox24.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

/* ---- Ids ---- */

/* Ids of leases and blocks. A permutation with a random key maps the numbers 1, 2, ... to the ids.
 * So an id is never used again, and does not tell a user how many ids other users got. The daemon
 * has the key, so it can compute the number of an id. */

struct shuf__ids {
    uint64_t last; /* the last number that was used */
    shuf_philox24 permutation;
};

void shuf__ids_init(struct shuf__ids *ids);

/* Increases `last`, and returns the id of that number. Never 0. */
uint64_t shuf__ids_next(struct shuf__ids *ids);

/* The id of a number that shuf__ids_next() has used. */
uint64_t shuf__ids_of(const struct shuf__ids *ids, uint64_t number);

/* The number of an id. 0 gives 0; a value that is not an id gives any number. */
uint64_t shuf__ids_number(const struct shuf__ids *ids, uint64_t id);

/* ---- Allocations ---- */

struct shuf__process_mapping; /* client_process.h: a process that may have the block mapped */
struct shuf__size_class;      /* pool.h */

/* The last answer of the kernel to the question whether an idle block is mapped. */
enum shuf__found { SHUF__FOUND_NOTHING, SHUF__FOUND_MAPPED, SHUF__FOUND_UNMAPPED };

struct shuf__allocation {
    struct shuf__allocations *all;
    struct shuf__block block; /* the first job allocates its memory */
    uint64_t id;              /* names the block for clients; no other block gets this id */
    uint64_t number;          /* counts the blocks: each new one has a larger number */
    uint64_t bytes;           /* charged */
    uint64_t committed;       /* bytes known to have physical memory; at most `bytes` */
    uint32_t uid;
    struct shuf__account *account; /* a reference; NULL: SHUF__UID_DAEMON */
    enum shuf__memory kind;
    bool buffer;            /* a client writes to the block */
    bool client_writable;   /* the client may have written to the block already */
    bool pending_free;      /* unused, but a process may still have it mapped */
    bool was_shared;        /* a process got a descriptor of the block */
    bool untracked;         /* host memory that a process without a connection may have mapped */
    enum shuf__found found; /* at the last reading of the pool (pool.h) */
    LIST_HEAD(, shuf__process_mapping) mappings;
    /* Number of mappings by detached processes. The daemon cannot notify these processes that the
     * block has new contents. */
    unsigned detached;
    LIST_ENTRY(shuf__allocation) link;
    TAILQ_ENTRY(shuf__allocation) pending_free_link;
    struct shuf__inode_watch watch;   /* of freed host memory that a process may have kept */
    bool unconfirmed;                 /* counts in budget->unconfirmed */
    struct shuf__engine_job free_job; /* frees the block in the lane of urgent jobs, */
    uv_work_t free_work;              /* or on a worker thread */

    /* Fields of an idle allocation, private to the pool (pool.h). */
    struct shuf__size_class *size_class; /* NULL: the allocation is in use */
    void *contents;                      /* NULL: the allocation is spare */
    bool is_warm_sized;                  /* has the size of its side's warm block */
    uint64_t idle_since_ms;
    TAILQ_ENTRY(shuf__allocation) in_lru, in_size_class;
};

/* The limits and counts for the bytes of all allocations in host memory, or in device memory. */
struct shuf__budget {
    struct shuf__amount configured;      /* for `max_limit` */
    struct shuf__amount configured_idle; /* for `idle_limit` */
    struct shuf__amount configured_warm; /* for `warm_size` */
    uint64_t sharers;          /* daemons that divide this memory: a percentage is of one share */
    uint64_t used;             /* charged bytes */
    uint64_t max_limit;        /* the configured limit of `used` */
    uint64_t limit;            /* max_limit, or less if other programs use the memory */
    uint64_t idle_limit;       /* limit of idle bytes (pool.h) */
    uint64_t available, total; /* memory of the machine or the GPU, as measured last */
    uint64_t warm_size;        /* size of the warm block (warm.h); 0: none */
    /* The system commits memory after the charge begins, and takes it back after the charge ends.
     */
    uint64_t uncommitted; /* bytes in `used` that the system still counts as available */
    uint64_t releasing;   /* bytes not in `used` that the system does not yet count as available */
    /* Bytes not in `used` that are being freed. A process may have kept them, so they may come back
     * to `used`. Nobody knows before they are freed. */
    uint64_t unconfirmed;
    struct shuf__reading reading; /* of `available` */
};

TAILQ_HEAD(shuf__pending_free, shuf__allocation);

struct shuf__allocations {
    struct shuf__engine *engine;
    struct shuf__accounts accounts;
    struct shuf__budget budgets[SHUF__SIDES];
    LIST_HEAD(, shuf__allocation) list;     /* all allocations */
    struct shuf__pending_free pending_free; /* a sweep checks the first one next */
    uv_loop_t *loop;
    uv_timer_t sweep;   /* the next sweep of pending_free */
    uv_idle_t sweep_on; /* more of it, in steps, while it frees blocks */
    struct shuf__ids ids;
    uint64_t count, pending_free_count;
    uint64_t freeing;   /* blocks not in `count` whose descriptors are still open */
    uint64_t buffers;   /* of `count` */
    uint64_t shortages; /* number of times that memory or leases were short; clients then unmap
                           unused blocks */
    uint64_t max_count; /* limit of `count` and `freeing`: each may need a descriptor */
    struct shuf__reading buffers_reading; /* of the bytes that clients have written to buffers */
    struct shuf__reading mapped_reading;  /* client_process.h */
    uint64_t mapped[SHUF__SIDES];         /* of all users, at that reading */
    /* For messages. `config_file`, `starter` (the program that started the daemon) and `unit` (of
     * systemd) are NULL or "" if there is none. The flags say which limits are options of the
     * command line. */
    const char *config_file, *starter, *unit;
    bool has_option[SHUF__SIDES], has_user_option;
    /* Blocks that libuv's worker threads free or touch; the backend must stay open. */
    uint64_t worker_blocks;
    void (*workers_done)(struct shuf__allocations *allocations); /* worker_blocks is 0 again */
    struct shuf__inode_watches watches;
    bool abandoned; /* the daemon ends and charges nobody any more */
    /* Called before an allocation is freed, to forget its mappings. */
    void (*on_free)(struct shuf__allocation *allocation);
};

void shuf__allocations_init(struct shuf__allocations *allocations, uv_loop_t *loop);

/* Sets max_count. Jobs that wait for descriptors begin again. */
void shuf__allocations_limit_count(struct shuf__allocations *allocations, uint64_t max_count);

enum shuf__side shuf__side_of(enum shuf__memory kind);

/* The bytes that results can use if nothing else uses the memory: all except a sixteenth. */
uint64_t shuf__budget_usable(const struct shuf__budget *budget);

/* Updates the limits of that side's budget. */
shuf_status shuf__allocations_measure(struct shuf__allocations *allocations, enum shuf__memory kind,
                                      struct shuf__error *error);

/* Like shuf__allocations_measure(), for requests that only read the limits. Does nothing if the
 * last reading can be used again (reading.h). */
void shuf__allocations_refresh(struct shuf__allocations *allocations, enum shuf__memory kind);

/* The size of an allocation for `bytes` bytes: rounded up, within the limit, so that the block can
 * be reused for results of similar size. */
uint64_t shuf__allocations_size(const struct shuf__allocations *allocations, enum shuf__memory kind,
                                uint64_t bytes);

/* The smallest size of an allocation for `bytes` bytes. */
uint64_t shuf__allocations_least_size(enum shuf__memory kind, uint64_t bytes);

/* Charges the budget. block.memory is NULL until a job allocates it. NULL when out of memory. */
struct shuf__allocation *shuf__allocation_make(struct shuf__allocations *allocations, uint32_t uid,
                                               enum shuf__memory kind, uint64_t size, bool buffer);

/* Charges memory of the daemon itself (SHUF__UID_DAEMON) to a user. False: out of memory. */
bool shuf__allocation_give(struct shuf__allocation *allocation, uint32_t uid);

/* The system has committed memory for at least the first `bytes` bytes: all bytes of a device
 * block, the written bytes of a host block. */
void shuf__allocation_commit(struct shuf__allocation *allocation, uint64_t bytes);

/* Notes that the client of a buffer may write to it from now on. From then on the committed bytes
 * are measured. */
void shuf__allocation_set_client_writable(struct shuf__allocation *allocation);

/* Whether the block is a file of memory that its client may write to. While the client punches a
 * hole in it, each access waits in the kernel. */
bool shuf__allocation_may_wait_for_client(const struct shuf__allocation *allocation);

/* Call when no job uses the allocation any more. Frees it now, or when every process has unmapped
 * it. */
void shuf__allocation_drop(struct shuf__allocation *allocation);

/* The same, but a sweep frees it. For callers that drop many in one step of the loop. */
void shuf__allocation_drop_later(struct shuf__allocation *allocation);

/* Ends the charge of an allocation of host memory while a worker thread still writes to it. When
 * the thread has ended, call shuf__allocation_free_on_worker(). */
void shuf__allocation_end_charge(struct shuf__allocation *allocation);
void shuf__allocation_free_on_worker(struct shuf__allocation *allocation);

/* Drops an allocation of host memory that no process has mapped. A worker thread frees it, because
 * freeing gigabytes takes long, and urgent jobs would wait. */
void shuf__allocation_drop_on_worker(struct shuf__allocation *allocation);

/* A new descriptor of the block for one process. The caller closes it. -1, with errno: there is
 * none. */
int shuf__allocation_export(const struct shuf__allocation *allocation);

/* Whether no process can have the block mapped. Then shuf__allocation_drop() frees it at once. */
bool shuf__allocation_is_unmapped(const struct shuf__allocation *allocation);

/* Whether the block may get a new result. It may not if a process without a connection may have it
 * mapped, because the daemon cannot notify that process. */
bool shuf__allocation_is_rewritable(struct shuf__allocation *allocation);

/* Call when a process has unmapped the block. Frees a pending block that no process has mapped. */
void shuf__allocation_free_if_unmapped(struct shuf__allocation *allocation);

/* Call when a process has unmapped the block, in place of shuf__allocation_free_if_unmapped(), if
 * there are many such blocks in this step of the loop. Soon frees it. */
void shuf__allocation_free_soon(struct shuf__allocation *allocation);

/* Call when a request needs memory. Frees pending allocations that every process has unmapped, but
 * checks only a few. A timer checks all of them, some at a time. */
void shuf__allocations_sweep_now(struct shuf__allocations *allocations);

/* Call when the daemon ends and all allocations are dropped. Leaves the mapped blocks to the
 * processes that have them mapped. */
void shuf__allocations_abandon(struct shuf__allocations *allocations);

#endif
