/* SPDX-License-Identifier: MIT
 *
 * One request, its reply and the payload after the reply, on an open connection. A round
 * trip that lost its daemon can run again on the next connection: it skips the payload bytes that
 * it has delivered.
 */
#ifndef SHUF__ROUND_TRIP_H
#define SHUF__ROUND_TRIP_H

#include "connection.h"
#include "shuf.h"

enum { SHUF__REPORT_STEP = 64 << 20 }; /* bytes: the most that one report adds */

struct shuf__round_trip {
    Shuf__Request *request;
    /* Called before the request is sent again. Removes the fields that only the last connection can
     * serve. Also removes those that a daemon performs even if it refuses the request, such as
     * releases. May be NULL. */
    void (*prepare_retry)(struct shuf__round_trip *trip);
    /* Called once for each reply with status SHUF_OK. May set the payload fields below. */
    shuf_status (*read_reply)(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                              struct shuf__error *error);
    void *context; /* for these two functions */
    /* The generation of the connection that can serve the request. A request that names a lease
     * needs the connection of this lease. 0: any connection can serve the request. */
    uint64_t generation;
    bool needs_buffer; /* this lease is a buffer */
    /* The payload goes to `memory` or, if this is NULL, to `sink`. */
    uint64_t payload_bytes;
    uint8_t *memory;
    shuf_sink sink;
    uint64_t
        width; /* bytes of a value: the sink gets only whole values. Divides the buffer's size. */
    void *sink_context;
    uint64_t key_check; /* of the reply whose values are delivered */
    uint64_t delivered; /* bytes of the payload so far; a sink gets only whole values */
    /* Called when `bytes` more bytes are delivered. May be NULL. */
    void (*report)(struct shuf__round_trip *trip, uint64_t bytes);
    void *report_context;
    bool is_stopped; /* by its sink */
};

/* Requires an open connection. Fails with SHUF_NO_DAEMON when the connection is lost. */
shuf_status shuf__round_trip_run(struct shuf__connection *connection, struct shuf__round_trip *trip,
                                 struct shuf__error *error);

/* Calls ->prepare_retry unless it is NULL. */
void shuf__round_trip_prepare_retry(struct shuf__round_trip *trip);

#endif
