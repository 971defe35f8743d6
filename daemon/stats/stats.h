/* SPDX-License-Identifier: MIT
 *
 * The counts for the metrics of requests, of their times, and of users. Other metrics read counts
 * that other parts of the daemon keep. The counts are plain integers, because only the loop's
 * thread uses them.
 */
#ifndef SHUFD_STATS_H
#define SHUFD_STATS_H

#include "request_kinds.h"
#include "request_record.h"
#include "user_totals.h"

#include <stdint.h>

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
