/* SPDX-License-Identifier: MIT
 *
 * Warm blocks: memory that is allocated and touched before a request needs it. The first touch of a
 * page takes longer than the computation of its values. Each side has one block of the configured
 * size. A result of more than half of this size may take it. When no block of this size is left,
 * another warm block is made. No user has had a warm block, so it has only zeros. All calls are on
 * the loop's thread; a worker thread touches the pages.
 */
#ifndef SHUFD_WARM_H
#define SHUFD_WARM_H

#include "shortage.h"

struct shuf__warm;

/* The block of one side that is being made. */
struct shuf__warm_block {
    struct shuf__warm *warm;
    enum shuf__side side;
    struct shuf__allocation *allocation; /* NULL: none is being made */
    uint64_t touched;                    /* bytes that are touched already */
    bool abandoned;                      /* its charge has ended, because a request needs room */
    uv_work_t touch;                     /* for host memory: touches the next step */
    struct shuf__engine_job allocate;    /* for device memory */
    struct shuf__error error;
};

struct shuf__warm {
    struct shuf__pool *pool;
    const struct shuf__shortage *shortage;
    uv_timer_t timer; /* the next check for a missing block */
    bool stopped;
    struct shuf__warm_block blocks[SHUF__SIDES];
    /* Called when a block is ready. */
    void (*ready)(struct shuf__warm *warm, const struct shuf__allocation *allocation);
};

void shuf__warm_init(struct shuf__warm *warm, uv_loop_t *loop, struct shuf__pool *pool,
                     const struct shuf__shortage *shortage);

/* From now on makes missing blocks, when the budget has room and memory is not short. Drops blocks
 * that no longer have the configured size. */
void shuf__warm_start(struct shuf__warm *warm);

/* Call when the daemon drains. No more blocks are made. */
void shuf__warm_stop(struct shuf__warm *warm);

#endif
