/* SPDX-License-Identifier: MIT
 *
 * Limits the rate of the lines that clients can cause, so a client cannot fill the journal. Each
 * kind of line has windows of time. The first lines of a window are logged. The others are held:
 * they are counted, and at the end of the window one line tells their number. If more lines are
 * held in the next window too, the windows of this kind get longer.
 */
#ifndef SHUFD_LOG_LIMIT_H
#define SHUFD_LOG_LIMIT_H

#include "log_line.h"

#include <stddef.h>
#include <stdint.h>

enum { SHUF__LOG_KINDS = 32 };

struct shuf__log_kind {
    const char *key; /* the format of its lines; kinds are compared by this address */
    uint64_t begin_ns, window_ns;
    uint64_t logged, held;      /* in this window */
    struct shuf__log_line line; /* the first held line of the window */
};

struct shuf__log_limits {
    struct shuf__log_kind kind[SHUF__LOG_KINDS];
    size_t count;
    uint64_t held_kinds; /* kinds with held lines now */
    uint64_t held_lines; /* lines held since the start */
};

/* True if the line is one of the first `rate` of its window and may be logged. Else it is held. */
bool shuf__log_limits_admit(struct shuf__log_limits *limits, const char *key, uint64_t rate,
                            const struct shuf__log_line *line, uint64_t now_ns);

/* If a window with held lines is over, writes the line that sums them up to *sum. False: there is
 * none. */
bool shuf__log_limits_sum_up(struct shuf__log_limits *limits, uint64_t now_ns,
                             struct shuf__log_line *sum);

#endif
