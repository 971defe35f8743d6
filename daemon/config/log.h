/* SPDX-License-Identifier: MIT
 *
 * The daemon's log: one line an event, to stderr. Lines for the journal carry their priority, and
 * others the time. Lines about a request go to the journal with fields (log_journal.c).
 */
#ifndef SHUFD_LOG_H
#define SHUFD_LOG_H

#include "error.h"
#include "log_fields.h"

#include <stdbool.h>
#include <stdint.h>

/* Most severe first. */
enum shuf__log_level {
    SHUF__LOG_ERROR,
    SHUF__LOG_WARNING,
    SHUF__LOG_INFO,
    SHUF__LOG_DEBUG,
};

struct shuf__log {
    enum shuf__log_level level; /* minimum severity to log */
    bool journal;               /* stderr is the journal: prefix lines with <6> and the like */
    bool stamped;               /* prefix lines with the time */
};

void shuf__log_init(struct shuf__log *log, enum shuf__log_level level);

/* Safe from any thread: a line is one write. */
void shuf__log(const struct shuf__log *log, enum shuf__log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with the fields if the line goes to the journal. */
void shuf__log_request(const struct shuf__log *log, enum shuf__log_level level,
                       const struct shuf__log_request *request, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "error", "warning", "info", "debug" */
const char *shuf__log_level_name(enum shuf__log_level level);

#endif
