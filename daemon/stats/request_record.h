/* SPDX-License-Identifier: MIT
 *
 * The facts about one request that its session collects for the metrics, the log and the probes.
 */
#ifndef SHUFD_REQUEST_RECORD_H
#define SHUFD_REQUEST_RECORD_H

#include "histogram.h"
#include "shuf_status.h"

#include <stdbool.h>

/* The times are by uv_hrtime(). 0: the request has not reached that point. */
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

#endif
