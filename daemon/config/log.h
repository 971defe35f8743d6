/* SPDX-License-Identifier: MIT
 *
 * The daemon's log: one line an event, to stderr. Lines for the journal carry their priority, and
 * others the time. Lines about a request go to the journal with fields (log_journal.c).
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
    uint64_t rate;              /* lines a second of a kind that clients can cause; 0: any number */
    struct shuf__log_reader reader;
    struct shuf__log_queue *queue; /* NULL: a line waits for its reader */
};

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level);

/* From now on, until the stop, no line waits for its reader. False: out of memory or threads. */
bool shuf__log_start(struct shuf__log *log);

/* Waits up to a second for the reader of the lines that are left. */
void shuf__log_stop(struct shuf__log *log);

/* Safe from any thread. */
void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, for lines that a client can cause: above the rate of their kind, which is their
 * `format`, they are counted instead. */
void shuf__log_client(const struct shuf__log *log, enum shuf__log_level level, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

/* As shuf__log_client(), with the fields if the line goes to the journal. */
void shuf__log_request(const struct shuf__log *log, enum shuf__log_level level,
                       const struct shuf__log_request *request, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct shuf__log_losses shuf__log_losses(const struct shuf__log *log);

#endif
