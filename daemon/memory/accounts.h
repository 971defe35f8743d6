/* SPDX-License-Identifier: MIT
 *
 * The connections, leases and blocks that each user has at present, and how many it may have. A
 * user may have only a part of the amount that the other users leave. So no user can take all. Root
 * and the daemon's user have no limits. All calls are on the loop's thread.
 */
#ifndef SHUFD_ACCOUNTS_H
#define SHUFD_ACCOUNTS_H

#include "identity.h"
#include "number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

enum shuf__side { SHUF__SIDE_HOST, SHUF__SIDE_DEVICE, SHUF__SIDES };

struct shuf__account {
    uint32_t uid;
    unsigned refs;
    uint64_t clients, leases, prefetches;
    uint64_t processes;          /* whose first connection the user made (client_process.h) */
    uint64_t mappings;           /* that its connections may have (client_process.h) */
    uint64_t blocks;             /* charged to the user */
    uint64_t bytes[SHUF__SIDES]; /* of these blocks */
    uint64_t idle[SHUF__SIDES];  /* of these bytes: kept for reuse (pool.h) */
    uint64_t pending_free[SHUF__SIDES]; /* unused, but mapped by some process */
    uint64_t unconfirmed[SHUF__SIDES];  /* not in `bytes`: see struct shuf__budget */
    /* Idle or pending bytes that processes had mapped at the last reading (client_process.h).
     * mapped_pid is the process with most of these bytes; 0: the daemon knows none. */
    uint64_t mapped[SHUF__SIDES];
    uint64_t most_mapped[SHUF__SIDES]; /* by the process mapped_pid */
    pid_t mapped_pid[SHUF__SIDES];
    LIST_ENTRY(shuf__account) link;
};

/* All users that have something. */
struct shuf__accounts {
    LIST_HEAD(, shuf__account) list;
    /* The memory that one user may have: a part of the memory that the other users leave, or bytes.
     * 0: no limits. */
    struct shuf__amount memory_share;
};

void shuf__accounts_init(struct shuf__accounts *accounts);

/* Returns a reference to the account of the user. Makes the account if there is none. NULL: out of
 * memory. */
struct shuf__account *shuf__account_of(struct shuf__accounts *accounts, uint32_t uid);
void shuf__account_unref(struct shuf__account *account);

/* NULL: the user has nothing. */
struct shuf__account *shuf__account_find(const struct shuf__accounts *accounts, uint32_t uid);

enum { SHUF__ACCOUNTS_LISTED = 32 };

/* Accounts with connections or blocks, for Status and the metrics. The account with the most bytes
 * comes first; with equal bytes, the one with the most connections. */
struct shuf__accounts_listed {
    const struct shuf__account *account[SHUF__ACCOUNTS_LISTED];
    unsigned count, others; /* listed accounts, and accounts that did not fit */
};

/* If `only` is not NULL, lists only the account of that user. */
struct shuf__accounts_listed shuf__accounts_list(const struct shuf__accounts *accounts,
                                                 const uint32_t *only);

/* Sums of an account: leases with prefetches, bytes and idle bytes of both sides. */
uint64_t shuf__account_leases(const struct shuf__account *account);
uint64_t shuf__account_bytes(const struct shuf__account *account);
uint64_t shuf__account_idle(const struct shuf__account *account);

/* Whether that user has limits of memory and blocks. SHUF__UID_DAEMON and privileged users, who see
 * and free the results of all users, have none. */
bool shuf__account_is_limited(const struct shuf__accounts *accounts, uint32_t uid);

/* The most that one user may have of `limit` if the other users have `others`: a part, such as 75%,
 * of 14/16 limit - others. Two sixteenths are reserved: one for root and the daemon's user, one for
 * users whose part would be too small. Such a user may have a 1024th of the bytes, and at least 4
 * MiB; a 1024th of the blocks, and at least 4; a 256th of the connections, and at least one. If the
 * limit is small, a 128th of it replaces the 4 MiB and the 4 blocks. */
uint64_t shuf__share_of_bytes(const struct shuf__accounts *accounts, uint64_t limit,
                              uint64_t others);
uint64_t shuf__share_of_blocks(uint64_t limit, uint64_t others);
uint64_t shuf__share_of_clients(struct shuf__amount part, uint64_t limit, uint64_t others);

#endif
