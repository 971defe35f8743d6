/* SPDX-License-Identifier: MIT
 *
 * The daemon's log: one line for each event, to stderr. If stderr is the journal, lines begin with
 * their priority, else with the time. Lines about a request go to the journal with fields. A limit
 * holds for the lines that clients cause, so a client cannot fill the journal.
 */
#ifndef SHUFD_LOG_H
#define SHUFD_LOG_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The request that a line is about. Each member is a field of the journal. */
struct shuf__log_request {
    char id[44];          /* REQUEST_ID: "CONNECTION.ID" */
    pid_t pid;            /* PEER_PID */
    uid_t uid;            /* PEER_UID */
    const char *kind;     /* KIND: "permute" */
    uint64_t n;           /* N; 0: none */
    uint64_t duration_us; /* DURATION_US; 0: none yet */
};

enum { SHUF__LOG_TEXT = 512 };

/* Most severe first. */
enum shuf__log_level {
    SHUF__LOG_ERROR,
    SHUF__LOG_WARNING,
    SHUF__LOG_INFO,
    SHUF__LOG_DEBUG,
};

struct shuf__log_line {
    enum shuf__log_level level;
    struct timespec time;
    bool has_request; /* the line is about `request` */
    struct shuf__log_request request;
    char text[SHUF__LOG_TEXT];
};

/* Where the log goes. */
struct shuf__log_output {
    bool journal; /* stderr is the journal: prefix lines with <6> and the like */
    bool stamped; /* prefix lines with the time */
};

/* "error", "warning", "info", "debug" */
const char *shuf__log_level_name(enum shuf__log_level level);

/* ---- The limit on lines that clients cause ---- */

/* Each kind of line has windows of time. The first lines of a window are logged. The others are
 * held: they are counted, and at the end of the window one line tells their number. If more lines
 * are held in the next window too, the windows of this kind get longer. */

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

/* ---- The log ---- */

/* Lines that did not reach the log since the start. */
struct shuf__log_losses {
    uint64_t dropped; /* because the reader was too slow, or gone */
    uint64_t held;    /* above the rate of their kind; one line tells their number */
};

struct shuf__log_queue; /* of lines that the log has yet to write */

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
