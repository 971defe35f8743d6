/* SPDX-License-Identifier: MIT
 *
 * See usage.h.
 */
#include "usage.h"

static struct shuf__usage usage_of(const struct shuf__account *account)
{
    return (struct shuf__usage){
        .uid = account->uid,
        .clients = account->clients,
        .leases = account->leases + account->prefetches,
        .blocks = account->blocks,
        .bytes = account->bytes[SHUF__SIDE_HOST] + account->bytes[SHUF__SIDE_DEVICE],
        .idle = account->idle[SHUF__SIDE_HOST] + account->idle[SHUF__SIDE_DEVICE],
        .account = account,
    };
}

void shuf__usages_read(const struct shuf__service *service, uint32_t only,
                       struct shuf__usages *usages)
{
    const struct shuf__account *account;
    usages->count = 0;
    LIST_FOREACH (account, &service->allocations.accounts.list, link) {
        if (usages->count == SHUF__USAGES)
            return;
        if ((only == SHUF__NO_USER || account->uid == only) &&
            (account->clients > 0 || account->blocks > 0))
            usages->user[usages->count++] = usage_of(account);
    }
}
