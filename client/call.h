/* SPDX-License-Identifier: MIT
 *
 * One call from request to last byte, across the loss of its daemon. An answer
 * is a pure function of its request, so the call asks the next daemon the same
 * and passes over the bytes that it has delivered.
 */
#ifndef SHUF__CALL_H
#define SHUF__CALL_H

#include "handle.h"

struct shuf__call {
    Shuf__Request *request;
    /* Takes out of the request what only the connection before this one knew, or what has been done
     * by a request that was refused. May be NULL. */
    void (*renew)(struct shuf__call *call);
    /* Looks at a reply whose status is SHUF_OK; once for each time it was asked. May still set
     * where the bytes go, and how many. */
    shuf_status (*accept)(struct shuf__call *call, const Shuf__Reply *reply,
                          struct shuf__error *error);
    void *answer; /* accept's */
    /* The connection that it is of, because of a lease in it: no other daemon is asked. 0: any. */
    uint64_t connection;
    uint64_t bulk;   /* raw bytes that must follow the reply */
    uint8_t *memory; /* where they go, or NULL: */
    shuf_sink sink;  /* who takes them */
    void *context;   /* the sink's */
    uint64_t delivered;
};

/* Leaves the message of a failure in the handle. */
shuf_status shuf__call_run(shuf *handle, struct shuf__call *call);

/* Asks only the daemon that the handle is connected to; SHUF_NO_DAEMON when it is lost. */
shuf_status shuf__call_once(shuf *handle, struct shuf__call *call, struct shuf__error *error);

#endif
