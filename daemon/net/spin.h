/* SPDX-License-Identifier: MIT
 *
 * Stays awake for a moment after each reply: a client that works in a loop asks
 * again at once, and waking a sleeping processor takes longer than a small request.
 */
#ifndef SHUFD_SPIN_H
#define SHUFD_SPIN_H

#include <stdint.h>
#include <uv.h>

struct shuf__spin {
    uv_idle_t idle; /* while it is active the loop does not sleep */
    uint64_t ns, until_ns;
};

/* 0: not at all, which is also what a single processor gets: there it would be in the way of those
 * that it waits for. */
void shuf__spin_init(struct shuf__spin *spin, uv_loop_t *loop, uint64_t us);

/* A reply was sent. */
void shuf__spin_replied(struct shuf__spin *spin);

#endif
