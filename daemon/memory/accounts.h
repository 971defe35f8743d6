/* SPDX-License-Identifier: MIT
 *
 * What each user has at present: connections, leases, and the blocks that are charged to it; and
 * how much of that a user may have. Each user leaves a part of what the others leave, so there is
 * always some for one more user. Root and the daemon's user have no limits. On the loop's
 * thread.
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
    /* Idle or pending bytes that processes had mapped at the last reading (client_process.h), and
     * the process with most of them; 0: none that the daemon knows of. */
    uint64_t mapped[SHUF__SIDES], most_mapped[SHUF__SIDES]; /* by that process */
    pid_t mapped_pid[SHUF__SIDES];
    LIST_ENTRY(shuf__account) link;
};

/* All users that have something. */
struct shuf__accounts {
    LIST_HEAD(, shuf__account) list;
    struct shuf__amount memory; /* of what the others leave; 0: no limits */
};

void shuf__accounts_init(struct shuf__accounts *accounts);

/* A reference to the account of the user, which is made if there is none. NULL: out of memory. */
struct shuf__account *shuf__account_of(struct shuf__accounts *accounts, uint32_t uid);
void shuf__account_unref(struct shuf__account *account);

/* NULL: the user has nothing. */
struct shuf__account *shuf__account_find(const struct shuf__accounts *accounts, uint32_t uid);

/* Root and the daemon's user, who see and free the results of all users, and have no limits. */
bool shuf__uid_is_privileged(uint32_t uid);

/* Whether limits of memory and blocks hold for that user. */
bool shuf__account_is_limited(const struct shuf__accounts *accounts, uint32_t uid);

/* The most that one user may have of `limit`, of which the others have `others`. A sixteenth is for
 * root. Another one is for users who have little, a 1024th or 4 MiB: the parts of what is left
 * would soon be too small. A number of clients is never exceeded. */
uint64_t shuf__share_of_bytes(const struct shuf__accounts *accounts, uint64_t limit,
                              uint64_t others);
uint64_t shuf__share_of_blocks(uint64_t limit, uint64_t others);
uint64_t shuf__share_of_clients(struct shuf__amount part, uint64_t limit, uint64_t others);

#endif
