/* SPDX-License-Identifier: MIT
 *
 * The state of a request for a result between its message and its reply.
 */
#ifndef SHUFD_RESULT_REQUEST_H
#define SHUFD_RESULT_REQUEST_H

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

#endif
