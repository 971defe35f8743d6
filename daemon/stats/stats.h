/* SPDX-License-Identifier: MIT
 *
 * The counts for the metrics of requests, of their times, and of users. Other metrics read counts
 * that other parts of the daemon keep. The counts are plain integers, because only the loop's
 * thread uses them.
 */
#ifndef SHUFD_STATS_H
#define SHUFD_STATS_H

#include "message.h"
#include "shuf_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Histograms of times ---- */

/* Three buckets for each power of ten, from a microsecond to 100 seconds. */
enum { SHUF__BUCKETS = 26 }; /* the last one has no upper bound */

/* Names one request of the daemon. */
struct shuf__request_id {
    uint64_t connection, id; /* the number of the connection, and the id that its client chose */
};

/* The last request of a bucket. */
struct shuf__exemplar {
    struct shuf__request_id request;
    uint64_t ns;    /* the observed time; 0: there is no exemplar */
    uint64_t at_ns; /* when it was observed, by uv_hrtime() */
};

struct shuf__histogram {
    uint64_t count[SHUF__BUCKETS]; /* of each bucket alone, not cumulative */
    uint64_t sum_ns;
    struct shuf__exemplar last[SHUF__BUCKETS];
};

/* The upper bounds in nanoseconds, inclusive. */
extern const uint64_t shuf__bucket_bounds[SHUF__BUCKETS - 1];

uint64_t shuf__histogram_count(const struct shuf__histogram *histogram);

/* ---- One request ---- */

/* The facts about one request that its session collects for the metrics, the log and the probes.
 * The times are by uv_hrtime(). 0: the request has not reached that point. */
struct shuf__request_record {
    struct shuf__request_id request;
    unsigned kind; /* by shuf__request_kind() */
    shuf_status status;
    bool divisible;       /* if there is no room, the client requests smaller parts */
    uint64_t n;           /* of the permutation, or the count of a stream; 0: the kind has none */
    uint64_t values;      /* number of values or records in the reply */
    uint64_t received_ns; /* its frame is complete */
    uint64_t started_ns;  /* its job leaves the queue, or it is computed at once */
    uint64_t computed_ns; /* its job is over */
    uint64_t replied_ns;  /* the reply is made */
    uint64_t sent_ns;     /* the last byte is in the socket */
};

enum shuf__stage { SHUF__STAGE_QUEUE, SHUF__STAGE_DEVICE, SHUF__STAGE_REPLY, SHUF__STAGES };

/* "queue", "device", "reply" */
const char *shuf__stage_name(enum shuf__stage stage);

/* The name of a kind, such as "permute"; "none" for a frame without a known kind. */
const char *shuf__request_kind_name(unsigned kind);

/* Sets *ns to the time that the request spent in that stage. False: it has not passed the stage. A
 * request that joins a running job was not in the queue, and counts only the rest of the job. */
bool shuf__request_stage(const struct shuf__request_record *record, enum shuf__stage stage,
                         uint64_t *ns);

/* Whether the status only tells the client to request smaller parts. */
static inline bool shuf__request_is_divided(const struct shuf__request_record *record,
                                            shuf_status status)
{
    return record->divisible && (status == SHUF_BUSY || status == SHUF_NO_MEMORY);
}

/* The time from the complete frame to the last byte of the reply. */
static inline uint64_t shuf__request_duration(const struct shuf__request_record *record)
{
    return record->sent_ns - record->received_ns;
}

/* ---- Totals of users ---- */

/* Totals of each user since the start of the daemon. The first 63 users have a row of their own.
 * The last row is for all others. memory/accounts.h has what each user holds now. */
enum { SHUF__USER_TOTALS = 64 };

struct shuf__user_total {
    uint32_t uid;
    uint64_t requests, values, device_ns;
};

struct shuf__user_totals {
    struct shuf__user_total row[SHUF__USER_TOTALS];
    size_t users; /* number of users that have a row of their own */
};

/* The row of the user, which stays valid. */
struct shuf__user_total *shuf__user_total_of(struct shuf__user_totals *totals, uint32_t uid);

/* The row that counts all users without a row. */
static inline const struct shuf__user_total *
shuf__user_totals_others(const struct shuf__user_totals *totals)
{
    return &totals->row[SHUF__USER_TOTALS - 1];
}

/* ---- All counts ---- */

/* The columns of the requests: the statuses, and the refusals after which the client requests
 * smaller parts. */
enum { SHUF__COLUMN_DIVIDED = SHUF_INTERNAL + 1, SHUF__COLUMNS };

struct shuf__stats {
    uint64_t requests[SHUF__REQUEST_KIND_MAX][SHUF__COLUMNS];
    uint64_t values[SHUF__REQUEST_KIND_MAX];
    struct shuf__histogram durations[SHUF__REQUEST_KIND_MAX];
    struct shuf__histogram stages[SHUF__STAGES];
    uint64_t payload_bytes, leased_bytes;
    uint64_t slow; /* requests above slow_request */
    uint64_t connections, refused;
    struct shuf__user_totals users;
};

/* Call when the reply to the request is sent. */
void shuf__stats_sent(struct shuf__stats *stats, const struct shuf__request_record *record,
                      struct shuf__user_total *user);

/* Call when the client has left before the last byte of its reply is sent. */
void shuf__stats_cancelled(struct shuf__stats *stats, const struct shuf__request_record *record,
                           struct shuf__user_total *user);

#endif
