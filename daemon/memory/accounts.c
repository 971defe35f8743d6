/* SPDX-License-Identifier: MIT
 *
 * See accounts.h.
 */
#include "accounts.h"

#include "engine/job.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    RESERVE = 16, /* a sixteenth is for root, and another sixteenth for users who have little */
    LITTLE = 1024,
    LITTLE_OF_CLIENTS = 256,
    FEW = 128,
    ENOUGH_BYTES = 4 << 20, /* two blocks of a device */
    ENOUGH_BLOCKS = 4,
};

static const struct shuf__amount part_of_blocks = {.number = 75, .percent = true};

void shuf__accounts_init(struct shuf__accounts *accounts)
{
    LIST_INIT(&accounts->list);
}

struct shuf__account *shuf__account_find(const struct shuf__accounts *accounts, uint32_t uid)
{
    struct shuf__account *account;
    LIST_FOREACH (account, &accounts->list, link)
        if (account->uid == uid)
            break;
    return account;
}

static struct shuf__account *add_account(struct shuf__accounts *accounts, uint32_t uid)
{
    struct shuf__account *account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    account->uid = uid;
    LIST_INSERT_HEAD(&accounts->list, account, link);
    return account;
}

struct shuf__account *shuf__account_of(struct shuf__accounts *accounts, uint32_t uid)
{
    struct shuf__account *account = shuf__account_find(accounts, uid);
    if (!account && !(account = add_account(accounts, uid)))
        return NULL;
    account->refs++;
    return account;
}

void shuf__account_unref(struct shuf__account *account)
{
    assert(account->refs > 0);
    if (--account->refs > 0)
        return;
    LIST_REMOVE(account, link);
    free(account);
}

static bool is_before(const struct shuf__account *a, const struct shuf__account *b)
{
    const uint64_t x = shuf__account_bytes(a), y = shuf__account_bytes(b);
    return x > y || (x == y && a->clients > b->clients);
}

struct shuf__accounts_listed shuf__accounts_list(const struct shuf__accounts *accounts,
                                                 const uint32_t *only)
{
    struct shuf__accounts_listed listed = {.count = 0};
    const struct shuf__account *account;
    LIST_FOREACH (account, &accounts->list, link) {
        if ((only && account->uid != *only) || (account->clients == 0 && account->blocks == 0))
            continue;
        unsigned at = listed.count;
        for (; at > 0 && is_before(account, listed.account[at - 1]); at--)
            if (at < SHUF__ACCOUNTS_LISTED)
                listed.account[at] = listed.account[at - 1];
        if (at < SHUF__ACCOUNTS_LISTED)
            listed.account[at] = account;
        if (listed.count < SHUF__ACCOUNTS_LISTED)
            listed.count++;
        else
            listed.others++;
    }
    return listed;
}

uint64_t shuf__account_leases(const struct shuf__account *account)
{
    return account->leases + account->prefetches;
}

uint64_t shuf__account_bytes(const struct shuf__account *account)
{
    return account->bytes[SHUF__SIDE_HOST] + account->bytes[SHUF__SIDE_DEVICE];
}

uint64_t shuf__account_idle(const struct shuf__account *account)
{
    return account->idle[SHUF__SIDE_HOST] + account->idle[SHUF__SIDE_DEVICE];
}

bool shuf__account_is_limited(const struct shuf__accounts *accounts, uint32_t uid)
{
    return accounts->memory_share.number > 0 && uid != SHUF__UID_DAEMON &&
           !shuf__uid_is_privileged(uid);
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The amount that a user may have even if others hold nearly everything: a 1024th of the limit, or
 * `enough` if that is more. `enough` is at most a 128th of the limit, so several users can have it.
 */
static uint64_t little_of(uint64_t limit, uint64_t enough)
{
    const uint64_t part = limit / LITTLE;
    enough = least_of(enough, limit / FEW);
    return part > enough ? part : enough;
}

static uint64_t share(struct shuf__amount part, uint64_t limit, uint64_t others, uint64_t little)
{
    const uint64_t reserve = limit / RESERVE, room = limit - reserve,
                   left = room > others ? room - others : 0,
                   large = left > reserve ? left - reserve : 0,
                   most = least_of(shuf__amount_bytes(part, large), large);
    little = least_of(little, left);
    return most > little ? most : little;
}

uint64_t shuf__share_of_bytes(const struct shuf__accounts *accounts, uint64_t limit,
                              uint64_t others)
{
    return share(accounts->memory_share, limit, others, little_of(limit, ENOUGH_BYTES));
}

uint64_t shuf__share_of_blocks(uint64_t limit, uint64_t others)
{
    return share(part_of_blocks, limit, others, little_of(limit, ENOUGH_BLOCKS));
}

uint64_t shuf__share_of_clients(struct shuf__amount part, uint64_t limit, uint64_t others)
{
    uint64_t little = limit / LITTLE_OF_CLIENTS;
    little = little > 0 ? little : 1;
    return share(part, limit, others, part.percent ? little : least_of(little, part.number));
}
