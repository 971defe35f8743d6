/* SPDX-License-Identifier: MIT
 *
 * See usage.h.
 */
#include "usage.h"

static struct shuf__usage *usage_of(struct shuf__usages *usages, uint32_t uid)
{
    static struct shuf__usage nobody;
    if (usages->only != SHUF__NO_USER && uid != usages->only)
        return &nobody;
    for (size_t i = 0; i < usages->count; i++)
        if (usages->user[i].uid == uid)
            return &usages->user[i];
    if (usages->count == SHUF__USAGES)
        return &nobody;
    usages->user[usages->count] = (struct shuf__usage){.uid = uid};
    return &usages->user[usages->count++];
}

void shuf__usages_count(const struct shuf__service *service, uint32_t only,
                        struct shuf__usages *usages)
{
    const struct shuf__allocation *allocation;
    const struct shuf__session *session;
    usages->only = only;
    usages->count = 0;
    LIST_FOREACH (allocation, &service->allocations.list, link) {
        if (allocation->uid == SHUF__NO_USER)
            continue;
        struct shuf__usage *usage = usage_of(usages, allocation->uid);
        usage->blocks++;
        usage->bytes += allocation->bytes;
        usage->idle += allocation->size_class ? allocation->bytes : 0;
    }
    LIST_FOREACH (session, &service->sessions.list, link) {
        struct shuf__usage *usage = usage_of(usages, session->client.uid);
        usage->clients++;
        usage->leases += session->leases.leased + session->leases.prefetches;
    }
}
