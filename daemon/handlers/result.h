/* SPDX-License-Identifier: MIT
 *
 * The state of a request for a result between its message and its reply, the replies, and the job
 * for a summary without a cache entry.
 */
#ifndef SHUFD_RESULT_H
#define SHUFD_RESULT_H

#include "cache/compute.h"
#include "memory/transport.h"
#include "net/session.h"

#include <stdbool.h>
#include <stdint.h>

struct shuf__result_request {
    struct shuf__waiter waiter; /* this request has a reference to waiter.entry */
    struct shuf__session *session;
    struct shuf__cache_key key;  /* contains the request */
    struct shuf__engine *engine; /* computes the result, or has computed it */
    struct shuf__shape shape;
    bool prefetch;
    struct shuf__cache_entry *input; /* of a shuffle: a reference while the message is handled */
    Shuf__Transport transport;       /* the transport of the reply */
    bool shared;                     /* the entry existed before this request */
};

/* Whether the client gets a lease. If not, the reply has the values, or only their summary. A
 * buffer has no values yet, so its client always gets a lease. */
static inline bool shuf__result_request_leases(const struct shuf__result_request *r)
{
    return r->transport > SHUF__TRANSPORT__TRANSPORT_INLINE || shuf__cache_key_is_buffer(&r->key);
}

/* ---- Replies (result_reply.c) ---- */

/* Each one consumes the request's reference to its entry. */

/* Logs the request. */
void shuf__result_log(const struct shuf__result_request *r);

/* Sends the result: as a lease, as bytes, or only its summary. `event` is the IPC event of a result
 * that is launched but not ready, else NULL. */
void shuf__result_reply(struct shuf__result_request *r, const uint8_t *event);

/* Sends a summary of a result that has no entry. */
void shuf__result_reply_summary(const struct shuf__result_request *r,
                                const struct shuf__summary *summary);

/* Sends a result without values, such as an empty shard. It needs no computation and no lease. */
void shuf__result_reply_empty(struct shuf__result_request *r);

/* Makes the reference to the entry a prefetch of the client. If it fails, the request keeps the
 * reference. */
shuf_status shuf__result_reply_prefetch(struct shuf__result_request *r, struct shuf__error *error);

/* ---- A summary without an entry (summary_job.c) ---- */

/* A request that asks only for the summary of a large result. The job computes the values part by
 * part, and adds each part to the summary. So it needs memory for only one part. */

/* Whether this job serves the request: it asks only for the summary of a large result. Call it if
 * the result is not in the cache. */
bool shuf__summary_job_applies(const struct shuf__result_request *r);

/* Submits the job, which sends the reply. Fails with SHUF_NO_MEMORY if the result is so large that
 * other requests would wait too long. The client then requests parts. Fails with SHUF_BUSY when the
 * queue is full. */
shuf_status shuf__summary_job_submit(const struct shuf__result_request *r,
                                     struct shuf__error *error);

#endif
