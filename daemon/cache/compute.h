/* SPDX-License-Identifier: MIT
 *
 * Computes the entries of the cache. An entry has one job at a time, and all requests for the entry
 * wait for that job. A computation is quick if it takes less time than waking another thread. The
 * loop's thread makes quick computations at once.
 */
#ifndef SHUFD_COMPUTE_H
#define SHUFD_COMPUTE_H

#include "summary.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A request that waits for an entry. Its owner has a reference to the entry as long as it waits.
 * `finished` is called once, on the loop's thread, except if the waiter leaves before. If `error`
 * is NULL, the summary has all parts that `options` requests. `event` is the IPC event of a
 * computation that is launched but not complete, else NULL. */
struct shuf__waiter {
    struct shuf__cache_entry *entry;
    struct shuf__compute_options options;
    void (*finished)(struct shuf__waiter *waiter, const struct shuf__error *error,
                     const uint8_t *event);
    uint64_t started_ns; /* set before `finished`: the start of the job; 0: it never started */
    TAILQ_ENTRY(shuf__waiter) link;
};

/* Computes the entry on the loop's thread, if the computation is quick, memory is ready for it and
 * the loop's backend is free. Sets *has_all if the entry is ready and its summary has all parts
 * that `options` requests. Fails if the device fails, or with SHUF_NO_MEMORY when out of memory. */
shuf_status shuf__compute_now(struct shuf__cache_entry *entry,
                              const struct shuf__compute_options *options, bool *has_all,
                              struct shuf__error *error);

/* Submits a job for the waiter's entry, or joins the job of this entry. Fails with SHUF_BUSY when
 * the queue is full. */
shuf_status shuf__compute_for(struct shuf__waiter *waiter, struct shuf__error *error);

/* Submits a job without a waiter. The job is cancelled when no client refers to the entry any more.
 */
shuf_status shuf__compute_ahead(struct shuf__cache_entry *entry, struct shuf__error *error);

/* The waiter leaves: its `finished` is not called any more. */
void shuf__compute_leave(struct shuf__waiter *waiter);

/* Gives a reference back. If then only the entry's job has a reference, cancels the job. */
void shuf__compute_unref(struct shuf__cache_entry *entry);

#endif
