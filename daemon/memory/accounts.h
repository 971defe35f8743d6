/* SPDX-License-Identifier: MIT
 *
 * The connections, leases and blocks that each user has at present, and how many it may have. A
 * user can take only a part of what the other users leave, so something is left for one more user.
 * Root and the daemon's user have no limits. All calls are on the loop's thread.
 */
#ifndef SHUFD_ACCOUNTS_H
#define SHUFD_ACCOUNTS_H

#include "amount.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

enum { SHUF__NO_USER = UINT32_MAX }; /* has the memory that no user has had yet */

enum shuf__side { SHUF__SIDE_HOST, SHUF__SIDE_DEVICE, SHUF__SIDES };

struct shuf__account {
    uint32_t uid;
    unsigned refs;
    uint64_t clients, leases, prefetches;
    uint64_t blocks;                    /* charged to the user */
    uint64_t bytes[SHUF__SIDES];        /* of these blocks */
    uint64_t idle[SHUF__SIDES];         /* of these bytes: kept for reuse (pool.h) */
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
    struct shuf__amount memory; /* the part that a user may have of the rest; 0: no limits */
};

void shuf__accounts_init(struct shuf__accounts *accounts);

/* Returns a reference to the account of the user. Makes the account if there is none. NULL: out of
 * memory. */
struct shuf__account *shuf__account_of(struct shuf__accounts *accounts, uint32_t uid);
void shuf__account_unref(struct shuf__account *account);

/* NULL: the user has nothing. */
struct shuf__account *shuf__account_find(const struct shuf__accounts *accounts, uint32_t uid);

/* Root and the daemon's user, who see and free the results of all users, and have no limits. */
bool shuf__uid_is_privileged(uint32_t uid);

/* Whether limits of memory and blocks hold for that user. */
bool shuf__account_is_limited(const struct shuf__accounts *accounts, uint32_t uid);

/* The most that one user may have of `limit` if the other users have `others`. A sixteenth of the
 * limit is for root. Another sixteenth is for users who have little, because their parts of the
 * rest may be too small. Such a user may have a 1024th of the bytes, or 4 MiB if that is more. It
 * may have a 1024th of the blocks, or 4 blocks if that is more. It may have a 256th of the
 * connections, or one. */
uint64_t shuf__share_of_bytes(const struct shuf__accounts *accounts, uint64_t limit,
                              uint64_t others);
uint64_t shuf__share_of_blocks(uint64_t limit, uint64_t others);
uint64_t shuf__share_of_clients(struct shuf__amount part, uint64_t limit, uint64_t others);

#endif
