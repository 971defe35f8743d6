/* SPDX-License-Identifier: MIT
 *
 * Warm blocks: memory that is allocated and touched before a request needs it, because the first
 * touch of a page costs more than computing into it. Each side has one block of the configured
 * size, for a result of more than half of it. When it is gone, taken and later freed, another one
 * is made. The block has never had a user, so it is all zeros. On the loop's thread, but for the
 * touching.
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
    uint64_t touched;                    /* bytes */
    bool abandoned;                      /* it has no charge any more */
    uv_work_t touch;                     /* host memory: of the next slice */
    struct shuf__engine_job allocate;    /* device memory */
    struct shuf__error error;
};

struct shuf__warm {
    struct shuf__pool *pool;
    const struct shuf__shortage *shortage;
    uv_timer_t timer; /* the next check for a missing block */
    bool stopped;
    struct shuf__warm_block blocks[SHUF__SIDES];
    /* A block is ready. */
    void (*ready)(struct shuf__warm *warm, const struct shuf__allocation *allocation);
};

void shuf__warm_init(struct shuf__warm *warm, uv_loop_t *loop, struct shuf__pool *pool,
                     const struct shuf__shortage *shortage);

/* Makes missing blocks from now on, when the budget has room and memory is not short; drops those
 * that no longer have the configured size. */
void shuf__warm_start(struct shuf__warm *warm);

/* The daemon drains: makes no more blocks. */
void shuf__warm_stop(struct shuf__warm *warm);

#endif
