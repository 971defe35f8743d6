/* SPDX-License-Identifier: MIT
 *
 * Whether there is room for one more block: in the budget of its side, in the number of blocks, and
 * in what its user may have (accounts.h). On the loop's thread.
 */
#ifndef SHUFD_ROOM_H
#define SHUFD_ROOM_H

#include "allocations.h"

/* Memory that somebody needs. */
struct shuf__need {
    uint32_t uid; /* SHUF__NO_USER: nobody's limits hold */
    enum shuf__memory kind;
    uint64_t size;
};

/* What there would be besides, if blocks were freed. */
struct shuf__freed {
    uint64_t bytes, blocks;
    uint64_t own_bytes, own_blocks; /* of these, the user's own */
};

/* Whether one more of that size is within the budget, the limit of their number, and the limits of
 * the user. `freed` NULL: nothing. */
bool shuf__room_has(const struct shuf__allocations *allocations, const struct shuf__need *need,
                    const struct shuf__freed *freed);

/* What the user of the need has, and the most that it may have. */
struct shuf__shares {
    uint64_t bytes, most_bytes;
    uint64_t blocks, most_blocks;
    uint64_t others_bytes;
};

/* `more`: bytes that are in the budget, but of nobody. */
struct shuf__shares shuf__room_shares(const struct shuf__allocations *allocations,
                                      const struct shuf__need *need,
                                      const struct shuf__freed *freed, uint64_t more);

/* Whether that user may have a block that is in the budget already. */
bool shuf__room_may_have(const struct shuf__allocations *allocations,
                         const struct shuf__need *need);

#endif
