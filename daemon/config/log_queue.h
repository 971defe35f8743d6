/* SPDX-License-Identifier: MIT
 *
 * The lines on their way to the reader of the log, written by a thread of their own. The thread
 * that logs never waits: when the queue is full, its lines are dropped and counted.
 */
#ifndef SHUFD_LOG_QUEUE_H
#define SHUFD_LOG_QUEUE_H

#include "log_line.h"

#include <stdint.h>

struct shuf__log_queue;

/* Lines that did not reach the log since the start. */
struct shuf__log_losses {
    uint64_t dropped; /* the reader was too slow, or gone */
    uint64_t held;    /* above the rate of their kind, and summed up */
};

/* NULL: out of memory or threads. */
struct shuf__log_queue *shuf__log_queue_start(struct shuf__log_reader reader);

/* From any thread. With `key`, at most `rate` lines a second of that kind; 0: any number. */
void shuf__log_queue_add(struct shuf__log_queue *queue, const struct shuf__log_line *line,
                         const char *key, uint64_t rate);

struct shuf__log_losses shuf__log_queue_losses(struct shuf__log_queue *queue);

/* Waits up to a second until all lines are written. The queue is gone afterwards. */
void shuf__log_queue_stop(struct shuf__log_queue *queue);

#endif
