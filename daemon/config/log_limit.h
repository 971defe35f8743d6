/* SPDX-License-Identifier: MIT
 *
 * The rate of the lines that clients can cause, by kind: one that floods the daemon must not fill a
 * journal. The first lines of a window are logged, the others counted, and one line sums them up.
 * The windows of a kind whose flood goes on get longer.
 */
#ifndef SHUFD_LOG_LIMIT_H
#define SHUFD_LOG_LIMIT_H

#include "log_line.h"

#include <stddef.h>
#include <stdint.h>

enum { SHUF__LOG_KINDS = 32 };

struct shuf__log_kind {
    const char *key; /* the format of its lines: its address names the place in the code */
    uint64_t begin_ns, window_ns;
    uint64_t logged, held;      /* in this window */
    struct shuf__log_line line; /* the first held one */
};

struct shuf__log_limits {
    struct shuf__log_kind kind[SHUF__LOG_KINDS];
    size_t count;
    uint64_t held;  /* kinds that have held lines now */
    uint64_t total; /* lines held since the start */
};

/* Whether the line may be logged: one of the first `rate` of its window. Else it is held. */
bool shuf__log_limits_admit(struct shuf__log_limits *limits, const char *key, uint64_t rate,
                            const struct shuf__log_line *line, uint64_t now_ns);

/* Sums up the held lines of a window that is over. False: there is none. */
bool shuf__log_limits_sum_up(struct shuf__log_limits *limits, uint64_t now_ns,
                             struct shuf__log_line *sum);

#endif
