/* SPDX-License-Identifier: MIT
 *
 * Whether there is room for one more block, and the reason if there is none. The block must fit
 * three limits: the budget of its side, the number of blocks, and the limits of its user
 * (accounts.h). All calls are on the loop's thread.
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

/* Whether the block fits even if processes have kept all memory that is being freed. If it does
 * not, the answer is known when this memory is freed. `charged`: the bytes of the block that are
 * charged to the budget already, but to no user. */
bool shuf__room_is_certain(const struct shuf__allocations *allocations,
                           const struct shuf__need *need, uint64_t charged);

/* Whether the user may have a block that is charged to the budget already, but to no user. */
bool shuf__room_may_have(const struct shuf__allocations *allocations,
                         const struct shuf__need *need);

/* ---- The reason why there is none ---- */

/* Fails with SHUF_NO_MEMORY if the needed block together with `beside` bytes exceeds the limit.
 * Then it does not fit even if nothing else is in use. */
shuf_status shuf__refusal_check_fit(const struct shuf__allocations *allocations,
                                    const struct shuf__need *need, uint64_t beside,
                                    struct shuf__error *error);

/* Says why there is no room even if `freed` were freed. Fails with SHUF_NO_MEMORY if the size is
 * above the largest limit. Fails with SHUF_BUSY if the memory is in use: by other users, by the
 * user itself, or by other programs. The message tells what to do. */
shuf_status shuf__refuse_allocation(struct shuf__allocations *allocations,
                                    const struct shuf__need *need, const struct shuf__freed *freed,
                                    struct shuf__error *error);

#endif
