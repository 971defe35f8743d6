/* SPDX-License-Identifier: MIT
 *
 * The queue of lines that the log has yet to write. A thread of its own writes them, so the thread
 * that logs never waits. When the queue is full, new lines are dropped and counted.
 */
#ifndef SHUFD_LOG_QUEUE_H
#define SHUFD_LOG_QUEUE_H

#include "log_line.h"

#include <stdint.h>

struct shuf__log_queue;

/* Lines that did not reach the log since the start. */
struct shuf__log_losses {
    uint64_t dropped; /* because the reader was too slow, or gone */
    uint64_t held;    /* above the rate of their kind; one line tells their number */
};

/* Makes the queue and starts its thread. NULL: out of memory or threads. */
struct shuf__log_queue *shuf__log_queue_start(struct shuf__log_output output);

/* Adds a line, from any thread. With a `key`, the line is of the kind `key`, and log_limit.h limits
 * the lines of this kind to `rate` a second. 0: no limit. */
void shuf__log_queue_add(struct shuf__log_queue *queue, const struct shuf__log_line *line,
                         const char *key, uint64_t rate);

/* Adds the lines that sum up the held lines, before the end of their windows. */
void shuf__log_queue_sum_up(struct shuf__log_queue *queue);

struct shuf__log_losses shuf__log_queue_losses(struct shuf__log_queue *queue);

/* Waits up to a second until all lines are written. The queue must not be used afterwards. */
void shuf__log_queue_stop(struct shuf__log_queue *queue);

#endif
