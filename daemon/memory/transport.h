/* SPDX-License-Identifier: MIT
 *
 * How a result reaches a client: the table of transports, with the backends that have them and the
 * clients that may use them.
 */
#ifndef SHUFD_TRANSPORT_H
#define SHUFD_TRANSPORT_H

#include "client_process.h"
#include "message.h"

/* The transports that a request accepts. */
struct shuf__accepted {
    const Shuf__Transport *list;
    size_t count;
};

/* The memory beside which a result must be: on the same side, host or device. */
struct shuf__beside {
    enum shuf__memory kind;
    const char *what; /* "the input is"; for messages */
};

/* Picks the accepted transport with the least copying that the backend has and the client may use;
 * NONE if none is accepted. *kind is the memory that it needs, on the side of `beside` (NULL: on
 * either side). Fails with SHUF_INVALID, or with SHUF_DENIED if the client may not use any of the
 * transports that it accepts. */
shuf_status shuf__transport_pick(struct shuf__client *client, const struct shuf__backend *backend,
                                 const struct shuf__accepted *accepted,
                                 const struct shuf__beside *beside, Shuf__Transport *transport,
                                 enum shuf__memory *kind, struct shuf__error *error);

/* False where the kernel grants no file leases: nothing would tell when a lent block is unmapped,
 * so memfd is refused and values are copied. */
bool shuf__transport_lends_host_memory(void);

/* "memfd"; for messages. */
const char *shuf__transport_name(Shuf__Transport transport);

#endif
