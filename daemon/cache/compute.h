/* SPDX-License-Identifier: MIT
 *
 * Computes the entries of the cache: one job an entry at a time, shared by all that wait for it. An
 * entry that takes less time than waking another thread is computed at once, on the loop's thread.
 */
#ifndef SHUFD_COMPUTE_H
#define SHUFD_COMPUTE_H

#include "summary.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A request that waits for an entry, without a reference to it. `finished` is called once, on the
 * loop's thread, unless the waiter leaves. If `error` is NULL, the summary has all that `options`
 * request. `event` is the IPC event of a launched, incomplete computation, else NULL. */
struct shuf__waiter {
    struct shuf__cache_entry *entry;
    struct shuf__compute_options options;
    void (*finished)(struct shuf__waiter *waiter, const struct shuf__error *error,
                     const uint8_t *event);
    uint64_t started_ns; /* of its job, when `finished` is called; 0: the job never started */
    TAILQ_ENTRY(shuf__waiter) link;
};

/* Computes a small entry on the loop's thread, if memory is ready for it and no job waits for the
 * loop's backend. *there: the summary has all that `options` request. Fails if the device does. */
shuf_status shuf__compute_now(struct shuf__cache_entry *entry,
                              const struct shuf__compute_options *options, bool *there,
                              struct shuf__error *error);

/* Submits a job for the waiter's entry, or joins the job of this entry. Fails with SHUF_BUSY when
 * the queue is full. */
shuf_status shuf__compute_for(struct shuf__waiter *waiter, struct shuf__error *error);

/* Submits a job without a waiter. It is cancelled when the entry has no reference any more. */
shuf_status shuf__compute_ahead(struct shuf__cache_entry *entry, struct shuf__error *error);

/* `finished` is not called any more. */
void shuf__compute_leave(struct shuf__waiter *waiter);

/* Gives a reference back. Cancels the entry's job if only the job refers to the entry then. */
void shuf__compute_unref(struct shuf__cache_entry *entry);

#endif
