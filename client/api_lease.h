/* SPDX-License-Identifier: MIT
 *
 * The object behind the public `shuf_lease *`: a lease that this process holds. A request for the
 * next lease can contain the release of the old one. So a loop over results costs one round trip
 * for each result.
 */
#ifndef SHUF__API_LEASE_H
#define SHUF__API_LEASE_H

#include "handle.h"
#include "mapping.h"
#include "request_message.h"
#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct shuf__held_lease {
    shuf_lease public_lease; /* first, so that one pointer serves for both */
    shuf *handle;
    LIST_ENTRY(shuf__held_lease) link;
    uint64_t generation;           /* of the connection that holds it */
    struct shuf__mapping *mapping; /* NULL: the values are in `copy` */
    bool is_buffer;
    void *copy;       /* memory for values by INLINE, reused by the next lease */
    size_t copy_size; /* bytes */
};

/* Fails with SHUF_INVALID, and the message in the handle, if the handle does not hold the input of
 * RECORDS, or if the input is `old`, the lease that the call gives back. */
shuf_status shuf__input_check(shuf *handle, const shuf_request *request, const shuf_lease *old);

/* Adds the input of RECORDS, which is checked, to the message. Does nothing with other kinds. */
shuf_status shuf__set_input(struct shuf__request_message *m, const shuf_request *request,
                            struct shuf__error *error);

/* As shuf_lease_release(), but keeps the handle's message: for clean-up after a failure. */
void shuf__release_quietly(shuf *handle, shuf_lease *lease);

/* Ends all leases of the handle and frees them. Sends nothing. */
void shuf__held_leases_free(shuf *handle);

#endif
