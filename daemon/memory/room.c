/* SPDX-License-Identifier: MIT
 *
 * See room.h.
 */
#include "room.h"

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

struct shuf__shares shuf__room_shares(const struct shuf__allocations *allocations,
                                      const struct shuf__need *need,
                                      const struct shuf__freed *freed, uint64_t more)
{
    static const struct shuf__account nothing;
    const struct shuf__account *found = shuf__account_find(&allocations->accounts, need->uid),
                               *account = found ? found : &nothing;
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct shuf__budget *budget = &allocations->budgets[side];
    struct shuf__shares shares = {
        .bytes = minus(account->bytes[side], freed->own_bytes),
        .blocks = minus(account->blocks, freed->own_blocks),
    };
    const uint64_t used = minus(budget->used, freed->bytes + more),
                   count = minus(allocations->count, freed->blocks);
    shares.others_bytes = minus(used, shares.bytes);
    shares.most_bytes =
        shuf__share_of_bytes(&allocations->accounts, budget->limit, shares.others_bytes);
    shares.most_blocks = shuf__share_of_blocks(allocations->max_count, minus(count, shares.blocks));
    return shares;
}

/* Idle blocks of the user count too. The caller evicts them before it refuses a request. */
static bool is_within_share(const struct shuf__allocations *allocations,
                            const struct shuf__need *need, const struct shuf__freed *freed,
                            uint64_t more)
{
    const struct shuf__shares shares = shuf__room_shares(allocations, need, freed, more);
    return need->size <= minus(shares.most_bytes, shares.bytes) &&
           shares.blocks < shares.most_blocks;
}

static const struct shuf__freed nothing_freed;

bool shuf__room_has(const struct shuf__allocations *allocations, const struct shuf__need *need,
                    const struct shuf__freed *freed)
{
    const struct shuf__budget *budget = &allocations->budgets[shuf__side_of(need->kind)];
    freed = freed ? freed : &nothing_freed;
    if (allocations->count - freed->blocks >= allocations->max_count ||
        need->size > budget->limit || budget->used - freed->bytes > budget->limit - need->size)
        return false;
    return !shuf__account_is_limited(&allocations->accounts, need->uid) ||
           is_within_share(allocations, need, freed, 0);
}

bool shuf__room_is_certain(const struct shuf__allocations *allocations,
                           const struct shuf__need *need, uint64_t charged)
{
    const enum shuf__side side = shuf__side_of(need->kind);
    const struct shuf__budget *budget = &allocations->budgets[side];
    const struct shuf__account *account = shuf__account_find(&allocations->accounts, need->uid);
    const uint64_t used = budget->used + budget->unconfirmed - charged,
                   own = account ? account->bytes[side] + account->unconfirmed[side] : 0;
    if (budget->unconfirmed == 0)
        return true;
    if (used + need->size > budget->limit)
        return false;
    return !shuf__account_is_limited(&allocations->accounts, need->uid) ||
           own + need->size <=
               shuf__share_of_bytes(&allocations->accounts, budget->limit, used - own);
}

bool shuf__room_may_have(const struct shuf__allocations *allocations, const struct shuf__need *need)
{
    return !shuf__account_is_limited(&allocations->accounts, need->uid) ||
           is_within_share(allocations, need, &nothing_freed, need->size);
}
