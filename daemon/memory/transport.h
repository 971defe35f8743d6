/* SPDX-License-Identifier: MIT
 *
 * A transport is a way by which a result reaches its client. This module has the table of
 * transports and chooses one for each request. The choice depends on the backend and on the client.
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

/* Picks the transport with the least copying that the request accepts, the backend has and the
 * client may use. Picks NONE if the request accepts no transport. Sets *kind to the kind of memory
 * that the transport needs. If `beside` is not NULL, the result is on the side of that memory.
 * Fails with SHUF_INVALID, or with SHUF_DENIED if the client may not use any of the transports that
 * it accepts. */
shuf_status shuf__transport_pick(struct shuf__client *client, const struct shuf__backend *backend,
                                 const struct shuf__accepted *accepted,
                                 const struct shuf__beside *beside, Shuf__Transport *transport,
                                 enum shuf__memory *kind, struct shuf__error *error);

/* Why the daemon refuses memfd and copies values, with an advice; "": it lends host memory. Without
 * file leases of the kernel, it cannot learn when a lent block is unmapped. The text stays valid.
 */
const char *shuf__transport_lending_fault(void);

/* Why the daemon can make no host memory to lend; "": it can. The text stays valid. */
const char *shuf__transport_memfd_fault(void);

/* The name for messages, such as "memfd". */
const char *shuf__transport_name(Shuf__Transport transport);

#endif
