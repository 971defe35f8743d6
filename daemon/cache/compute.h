/* SPDX-License-Identifier: MIT
 *
 * Makes results: one job a result at a time, however many wait for it. What can be
 * done sooner than another thread would wake is done at once, where the request
 * came in. On the loop's thread, but for what the job does on the engine's.
 */
#ifndef SHUFD_COMPUTE_H
#define SHUFD_COMPUTE_H

#include "cache.h"
#include "summary.h"

#include <stdbool.h>
#include <sys/queue.h>

struct shuf__server;

/* One that waits for a result. `told` is called once, from the loop, unless it leaves before; what
 * it wanted is there then, or *error says why not. `event`: of a computation that is launched and
 * not yet over, else NULL. Holds no reference of its own to the result. */
struct shuf__waiter {
    struct shuf__cache_entry *result;
    struct shuf__compute_options want;
    void (*told)(struct shuf__waiter *waiter, const struct shuf__error *error,
                 const uint8_t *event);
    TAILQ_ENTRY(shuf__waiter) link;
};

/* Whether all that is wanted is there, or could be made so on the spot. Fails with
 * the device. */
shuf_status shuf__compute_now(struct shuf__server *server, struct shuf__cache_entry *result,
                              const struct shuf__compute_options *want, bool *there,
                              struct shuf__error *error);

/* Has it made, and calls `told` then. Fails with SHUF_BUSY when too much waits already. */
shuf_status shuf__compute_for(struct shuf__server *server, struct shuf__waiter *waiter,
                              struct shuf__error *error);

/* Has it made, though nobody waits for it. Somebody must refer to it: when nobody does any more it
 * is cancelled. */
shuf_status shuf__compute_ahead(struct shuf__server *server, struct shuf__cache_entry *result,
                                struct shuf__error *error);

/* The waiter will not be told. */
void shuf__compute_leave(struct shuf__waiter *waiter);

/* Gives a reference back; what then nobody wants any more is cancelled. */
void shuf__compute_unref(struct shuf__cache_entry *result);

#endif
