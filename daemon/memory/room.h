/* SPDX-License-Identifier: MIT
 *
 * Whether there is room for one more block. It must fit three limits: the budget of its side, the
 * number of blocks, and the limits of its user (accounts.h). All calls are on the loop's thread.
 */
#ifndef SHUFD_ROOM_H
#define SHUFD_ROOM_H

#include "allocations.h"

/* A block that a request needs. */
struct shuf__need {
    uint32_t uid; /* SHUF__UID_DAEMON: the limits of users do not apply */
    enum shuf__memory kind;
    uint64_t size;
};

/* The numbers of bytes and of blocks that could be freed for a request. */
struct shuf__freed {
    uint64_t bytes, blocks;
    uint64_t own_bytes, own_blocks; /* the part of these that is charged to the user */
};

/* Whether one more block of the needed size fits these limits. `freed` NULL: no block is freed. */
bool shuf__room_has(const struct shuf__allocations *allocations, const struct shuf__need *need,
                    const struct shuf__freed *freed);

/* The memory that the user has, and the most that it may have. */
struct shuf__shares {
    uint64_t bytes, most_bytes;
    uint64_t blocks, most_blocks;
    uint64_t others_bytes;
};

/* `more`: bytes that are charged to the budget, but to no user. */
struct shuf__shares shuf__room_shares(const struct shuf__allocations *allocations,
                                      const struct shuf__need *need,
                                      const struct shuf__freed *freed, uint64_t more);

/* Whether the block fits even if processes have kept all memory that is being freed. If it does
 * not, the answer is known when this memory is freed. `charged`: the bytes of the block that are
 * charged to the budget already, but to no user. */
bool shuf__room_is_certain(const struct shuf__allocations *allocations,
                           const struct shuf__need *need, uint64_t charged);

/* Whether the user may have a block that is charged to the budget already, but to no user. */
bool shuf__room_may_have(const struct shuf__allocations *allocations,
                         const struct shuf__need *need);

#endif
