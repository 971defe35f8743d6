/* SPDX-License-Identifier: MIT
 *
 * Leases: references to results that a client holds under ids, until it gives them back or its
 * connection ends. On the loop's thread.
 */
#ifndef SHUFD_LEASE_H
#define SHUFD_LEASE_H

#include "cache.h"
#include "lease_table.h"
#include "memory/client_process.h"
#include "memory/ids.h"
#include "message.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    SHUF__PREFETCHES = 4,    /* prefetched results that one connection may have */
    SHUF__RELEASE_MAX = 256, /* leases, or blocks, in one Release */
};

/* All leases. */
struct shuf__leases {
    uv_loop_t *loop;
    uint64_t limit;      /* leases of one connection */
    uint64_t user_limit; /* of all connections of one user */
    struct shuf__lease_table table;
    struct shuf__ids ids;
};

/* The leases of one connection; embedded in its session. */
struct shuf__lease_list {
    struct shuf__leases *all;
    struct shuf__client *client;
    struct shuf__account *account;             /* of its user; a reference of the session */
    LIST_HEAD(, shuf__lease) list, prefetched; /* newest first */
    uint64_t leased, prefetches;               /* in these lists */
};

struct shuf__lease {
    uint64_t id;     /* for clients; never used again */
    uint64_t number; /* of leases so far */
    struct shuf__lease_list *owner;
    struct shuf__cache_entry *entry;
    Shuf__Transport transport;
    bool prefetch; /* the client does not have the result yet */
    uint64_t since_ms;
    bool releasing; /* named by the Release that is checked */
    LIST_ENTRY(shuf__lease) of_owner;
};

void shuf__leases_init(struct shuf__leases *leases, uv_loop_t *loop);

/* All leases have ended. */
void shuf__leases_free(struct shuf__leases *leases);

/* Fails with SHUF_BUSY if the connection or its user has the most leases that it may hold. To be
 * called before the result is computed. */
shuf_status shuf__lease_check_limit(const struct shuf__lease_list *owner,
                                    struct shuf__error *error);

/* Takes over the caller's reference to the entry on success. A lease of a prefetched result ends
 * the prefetch; a prefetch too many ends the oldest one. Fails with SHUF_NO_MEMORY. */
shuf_status shuf__lease_take(struct shuf__lease_list *owner, struct shuf__cache_entry *entry,
                             Shuf__Transport transport, bool prefetch, uint64_t *id,
                             struct shuf__error *error);

/* The connection's lease with that id. NULL, with SHUF_INVALID, if there is none or it is only
 * prefetched. */
struct shuf__lease *shuf__lease_find(const struct shuf__lease_list *owner, uint64_t id,
                                     struct shuf__error *error);

/* Gives back the leases and blocks that `release` names. Fails with SHUF_INVALID, and gives nothing
 * back, if the connection does not hold one of the leases. */
shuf_status shuf__leases_release(struct shuf__lease_list *owner, const Shuf__Release *release,
                                 struct shuf__error *error);

/* The client gets the result without a lease: ends its prefetch. */
void shuf__lease_end_prefetch(struct shuf__lease_list *owner,
                              const struct shuf__cache_entry *entry);

/* The connection ends. */
void shuf__leases_end(struct shuf__lease_list *owner);

#endif
