/* SPDX-License-Identifier: MIT
 *
 * Leases: lists leases, one page for each request. Users see their own leases. Root and the
 * daemon's user see all leases.
 */
#include "handlers.h"
#include "result_message.h"
#include "service.h"

enum {
    PAGE = 16,   /* entries in a reply, each at most about 260 bytes, so a page fits a frame */
    LOOK = 4096, /* most leases that one request looks at, so that others need not wait long */
};

static bool may_see(const struct shuf__session *session, const struct shuf__lease *lease)
{
    return shuf__session_is_privileged(session) || session->client.uid == lease->owner->client->uid;
}

/* An entry of the reply, with the messages that it points at. */
struct entry {
    Shuf__LeaseEntry message;
    struct shuf__result_message request;
};

static void fill(const struct shuf__lease *lease, uint64_t now, struct entry *filled)
{
    Shuf__LeaseEntry *to = &filled->message;
    const struct shuf__cache_entry *entry = lease->entry;
    const struct shuf__shape shape = shuf__request_shape(&entry->key.request);
    *to = (Shuf__LeaseEntry)SHUF__LEASE_ENTRY__INIT;
    to->id = lease->id;
    to->pid = (uint64_t)lease->owner->client->pid;
    to->uid = lease->owner->client->uid;
    to->transport = lease->transport;
    to->prefetch = lease->prefetch;
    to->ready = entry->ready;
    to->age_ms = now - lease->since_ms;
    to->block = entry->allocation ? entry->allocation->id : 0; /* 0 before its job starts */
    to->block_bytes = entry->allocation ? entry->allocation->bytes : 0;
    to->rows = shape.rows;
    to->count = shape.count;
    shuf__result_message_of(&entry->key.request, &filled->request);
    to->request = &filled->request.result;
}

void shuf__handle_leases(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__service *service = shuf__service_of(session);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__LeasesReply page = SHUF__LEASES_REPLY__INIT;
    struct entry entries[PAGE];
    Shuf__LeaseEntry *pointers[PAGE];
    const struct shuf__lease_table *table = &service->leases.table;
    const struct shuf__ids *ids = &service->leases.ids;
    size_t i = shuf__lease_table_above(table, shuf__ids_number(ids, request->leases->after));
    for (size_t looked = 0; i < table->used && looked < LOOK && page.n_lease < PAGE;
         i++, looked++) {
        const struct shuf__lease *lease = table->slots[i].lease;
        if (!lease || !may_see(session, lease))
            continue;
        fill(lease, uv_now(service->loop), &entries[page.n_lease]);
        pointers[page.n_lease] = &entries[page.n_lease].message;
        page.n_lease++;
    }
    page.next = i < table->used ? shuf__ids_of(ids, table->slots[i - 1].number) : 0;
    page.lease = pointers;
    reply.body_case = SHUF__REPLY__BODY_LEASES;
    reply.leases = &page;
    shuf__session_reply(session, &reply, NULL, NULL);
}
