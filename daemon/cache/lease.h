/* SPDX-License-Identifier: MIT
 *
 * Leases. A lease is a reference of a client to a result, under an id. It ends when the client
 * gives it back, or with the connection. All calls are on the loop's thread.
 */
#ifndef SHUFD_LEASE_H
#define SHUFD_LEASE_H

#include "cache.h"
#include "memory/allocations.h"
#include "memory/client_process.h"
#include "message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* ---- The table of leases ---- */

/* All leases, in an array that is sorted by number. Numbers only grow, so a new lease goes to the
 * end, and a binary search finds a lease. A lease that ends leaves a gap; when half of the array
 * is gaps, the gaps are removed. */

struct shuf__lease;

struct shuf__lease_slot {
    uint64_t number;
    struct shuf__lease *lease; /* NULL: it has ended */
};

struct shuf__lease_table {
    struct shuf__lease_slot *slots;
    size_t used, room; /* slots */
    size_t count;      /* leases */
};

void shuf__lease_table_free(struct shuf__lease_table *table);

/* Adds a lease. Its number must be larger than all numbers before. False: out of memory. */
bool shuf__lease_table_add(struct shuf__lease_table *table, uint64_t number,
                           struct shuf__lease *lease);

void shuf__lease_table_remove(struct shuf__lease_table *table, uint64_t number);

/* The lease with that number, or NULL. */
struct shuf__lease *shuf__lease_table_find(const struct shuf__lease_table *table, uint64_t number);

/* The index of the first slot with a larger number; table->used if there is none. */
size_t shuf__lease_table_above(const struct shuf__lease_table *table, uint64_t number);

/* ---- Leases ---- */

enum {
    SHUF__PREFETCHES = 4,    /* prefetched results that one connection may have */
    SHUF__RELEASE_MAX = 256, /* leases, or blocks, in one Release */
};

/* All leases. */
struct shuf__leases {
    uv_loop_t *loop;
    struct shuf__allocations *allocations;
    uint64_t limit;      /* leases of one connection */
    uint64_t user_limit; /* of all connections of one user; also of their mappings */
    struct shuf__lease_table table;
    struct shuf__ids ids;
    LIST_HEAD(, shuf__lease) over; /* leases that have ended, but not yet their results */
    uv_idle_t ending;              /* active while there are some */
};

/* The leases of one connection; embedded in its session. */
struct shuf__lease_list {
    struct shuf__leases *all;
    struct shuf__client *client;
    struct shuf__account *account;             /* of its user; a reference of the session */
    LIST_HEAD(, shuf__lease) list, prefetched; /* newest first */
    uint64_t leased, prefetches;               /* lengths of these lists */
};

struct shuf__lease {
    uint64_t id;     /* names the lease for clients; no other lease gets this id */
    uint64_t number; /* counts the leases: each new one has a larger number */
    struct shuf__lease_list *owner;
    struct shuf__cache_entry *entry;
    Shuf__Transport transport;
    bool prefetch; /* the client has not requested the result itself yet */
    uint64_t since_ms;
    bool releasing; /* set while a Release is checked that names this lease */
    LIST_ENTRY(shuf__lease) of_owner;
};

void shuf__leases_init(struct shuf__leases *leases, uv_loop_t *loop,
                       struct shuf__allocations *allocations);

/* Call when all leases have ended. */
void shuf__leases_free(struct shuf__leases *leases);

/* Fails with SHUF_BUSY if the connection or its user cannot have another lease. If that is because
 * of mappings, counts a shortage, so that clients unmap blocks. Call it before the result is
 * computed. */
shuf_status shuf__lease_check_limit(const struct shuf__lease_list *owner,
                                    struct shuf__error *error);

/* Makes a lease or a prefetch of the entry. On success it takes over the caller's reference to the
 * entry. A lease of a prefetched result ends the prefetch. A prefetch above the limit ends the
 * oldest one. Fails with SHUF_NO_MEMORY. */
shuf_status shuf__lease_take(struct shuf__lease_list *owner, struct shuf__cache_entry *entry,
                             Shuf__Transport transport, bool prefetch, uint64_t *id,
                             struct shuf__error *error);

/* The connection's lease with that id. If there is none, or only a prefetch, returns NULL and sets
 * SHUF_INVALID. */
struct shuf__lease *shuf__lease_find(const struct shuf__lease_list *owner, uint64_t id,
                                     struct shuf__error *error);

/* Gives back the leases and blocks that `release` names. Fails with SHUF_INVALID, and gives nothing
 * back, if the connection does not hold one of the leases. */
shuf_status shuf__leases_release(struct shuf__lease_list *owner, const Shuf__Release *release,
                                 struct shuf__error *error);

/* Ends the prefetch of a result that the client gets without a lease. */
void shuf__lease_end_prefetch(struct shuf__lease_list *owner,
                              const struct shuf__cache_entry *entry);

/* Ends all prefetches of the connection. */
void shuf__lease_end_prefetches(struct shuf__lease_list *owner);

/* Ends all leases of a connection. If there are many, the results of some end later: the daemon
 * serves its sockets in between. The user stays charged for these results until then. */
void shuf__leases_end(struct shuf__lease_list *owner);

/* Ends these results now. */
void shuf__leases_finish(struct shuf__leases *leases);

#endif
