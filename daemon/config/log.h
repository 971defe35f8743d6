/* SPDX-License-Identifier: MIT
 *
 * The daemon's log: one line for each event, to stderr. If stderr is the journal, lines begin with
 * their priority, else with the time. Lines about a request go to the journal with fields
 * (log_journal.c).
 */
#ifndef SHUFD_LOG_H
#define SHUFD_LOG_H

#include "error.h"
#include "log_fields.h"
#include "log_line.h"
#include "log_queue.h"

#include <stdbool.h>
#include <stdint.h>

struct shuf__log {
    enum shuf__log_level level; /* minimum severity to log */
    uint64_t rate;              /* most lines a second of a kind that clients cause; 0: no limit */
    struct shuf__log_output output;
    struct shuf__log_queue *queue; /* NULL: shuf__log() waits until the line is written */
};

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level);

/* From now on, until shuf__log_stop(), a thread writes the lines, and shuf__log() does not wait.
 * False: out of memory or threads. */
bool shuf__log_start(struct shuf__log *log);

/* Waits up to a second until the remaining lines are written. */
void shuf__log_stop(struct shuf__log *log);

/* Safe from any thread. */
void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs a line that a client can cause. Lines with the same `format` are of one kind. Lines above
 * the rate of their kind are counted, but not written. */
void shuf__log_client(const struct shuf__log *log, enum shuf__log_level level, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

/* Like shuf__log_client(). If the line goes to the journal, it also gets the fields of `request`.
 */
void shuf__log_request(const struct shuf__log *log, enum shuf__log_level level,
                       const struct shuf__log_request *request, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Logs at once the sums of the lines above the rate, before their windows end. Call it before the
 * last line, which names the cause of the end. */
void shuf__log_sum_up(const struct shuf__log *log);

struct shuf__log_losses shuf__log_losses(const struct shuf__log *log);

#endif
