/* SPDX-License-Identifier: MIT
 *
 * How a result reaches a client: the table of transports, which of them a backend
 * has, and to whom they are open.
 */
#ifndef SHUFD_TRANSPORT_H
#define SHUFD_TRANSPORT_H

#include "allocations.h"
#include "backend.h"
#include "message.h"

struct shuf__session;

/* What a request says of them. */
struct shuf__accepted {
    const Shuf__Transport *list;
    size_t count;
};

/* Picks from what is accepted the transport with the least copying that the backend has and
 * this client may use; NONE where nothing is. *kind is the memory that it needs, on the side of
 * that of `input` (NULL: on either). Fails with SHUF_INVALID, or with SHUF_DENIED where only what
 * is refused to this client would do. */
shuf_status shuf__transport_pick(struct shuf__session *session, const struct shuf__backend *backend,
                                 const struct shuf__accepted *accepted,
                                 const struct shuf__allocation *input, Shuf__Transport *transport,
                                 enum shuf__memory *kind, struct shuf__error *error);

/* "memfd"; for messages. */
const char *shuf__transport_name(Shuf__Transport transport);

#endif
