/* SPDX-License-Identifier: MIT
 *
 * A Permute, Stream, Shuffle, Allocate or Exchange on its way from the message to the reply.
 */
#ifndef SHUFD_RESULT_REQUEST_H
#define SHUFD_RESULT_REQUEST_H

#include "cache/compute.h"
#include "memory/transport.h"
#include "net/session.h"

#include <stdbool.h>
#include <stdint.h>

/* The form of the reply. */
struct shuf__reply_options {
    struct shuf__accepted accepted;
    bool fingerprint, sums, prefetch, event;
    uint64_t fingerprint_index;
};

struct shuf__result_request {
    struct shuf__pending pending; /* while the session waits */
    struct shuf__waiter waiter;   /* its entry is a reference */
    struct shuf__session *session;
    struct shuf__key key; /* with the request */
    struct shuf__shape shape;
    struct shuf__reply_options options;
    const Shuf__Release *give_back;  /* NULL: nothing; valid until the message is handled */
    struct shuf__cache_entry *input; /* of a shuffle: a reference until the message is handled */
    Shuf__Transport transport;       /* of the reply */
    bool shared;                     /* the entry is not new */
};

/* The client gets a lease. Otherwise the values are sent, or only their summary. A buffer has no
 * values yet. */
static inline bool shuf__result_request_leases(const struct shuf__result_request *r)
{
    return r->transport > SHUF__TRANSPORT__TRANSPORT_INLINE || shuf__key_is_buffer(&r->key);
}

#endif
