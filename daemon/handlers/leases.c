/* SPDX-License-Identifier: MIT
 *
 * Leases: lists leases, one page for each request. Users see their own leases. Root and the
 * daemon's user see all leases.
 */
#include "algorithm.h"
#include "handlers.h"
#include "parse.h"
#include "service.h"

enum {
    PAGE = 16,   /* entries in a reply, each at most about 240 bytes, so a page fits a frame */
    LOOK = 4096, /* most leases that one request looks at, so that others need not wait long */
};

static bool may_see(const struct shuf__session *session, const struct shuf__lease *lease)
{
    return shuf__session_is_privileged(session) || session->client.uid == lease->owner->client->uid;
}

static void fill_permutation(const struct shuf__permutation *p, Shuf__LeaseEntry *entry)
{
    entry->algorithm = (char *)(uintptr_t)shuf__algorithm_name(p->algorithm);
    entry->n = p->n;
    entry->seed = p->seed;
    entry->epoch = p->epoch;
}

static void fill_stream(const struct shuf__request *request, Shuf__LeaseEntry *entry)
{
    const struct shuf__stream *s = &request->stream;
    entry->distribution = shuf__wire_distribution(s->distribution);
    entry->method = shuf__wire_method(s->distribution);
    entry->seed = s->seed;
    entry->stream = s->stream;
    entry->offset = s->offset;
    entry->dtype = (Shuf__Dtype)request->dtype;
    entry->mean = s->mean;
    entry->std = s->std;
}

static void fill_request(const struct shuf__request *request, Shuf__LeaseEntry *entry)
{
    const struct shuf__shape shape = shuf__request_shape(request);
    const struct shuf__permutation *p = shuf__request_permutation(request);
    entry->rows = shape.rows;
    entry->count = shape.count;
    entry->key = (char *)(uintptr_t)request->key.name;
    entry->buffer = request->kind == SHUF__BUFFER;
    if (p)
        fill_permutation(p, entry);
    if (request->kind == SHUF__STREAM)
        fill_stream(request, entry);
    if (request->kind == SHUF__SHUFFLE) {
        entry->record = request->shuffle.record;
        entry->inverse = request->shuffle.inverse;
    }
    if (request->kind == SHUF__EXCHANGE) {
        entry->rank = request->plan.rank;
        entry->world = request->plan.world;
        entry->inverse = request->plan.inverse;
        entry->part = request->plan.part;
    }
}

static void fill(const struct shuf__lease *lease, uint64_t now, Shuf__LeaseEntry *to)
{
    const struct shuf__cache_entry *entry = lease->entry;
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
    fill_request(&entry->key.request, to);
}

void shuf__handle_leases(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__service *service = shuf__service_of(session);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__LeasesReply page = SHUF__LEASES_REPLY__INIT;
    Shuf__LeaseEntry entries[PAGE], *pointers[PAGE];
    const struct shuf__lease_table *table = &service->leases.table;
    const struct shuf__ids *ids = &service->leases.ids;
    size_t i = shuf__lease_table_above(table, shuf__ids_number(ids, request->leases->after));
    for (size_t looked = 0; i < table->used && looked < LOOK && page.n_lease < PAGE;
         i++, looked++) {
        const struct shuf__lease *lease = table->slots[i].lease;
        if (!lease || !may_see(session, lease))
            continue;
        fill(lease, uv_now(service->loop), &entries[page.n_lease]);
        pointers[page.n_lease] = &entries[page.n_lease];
        page.n_lease++;
    }
    page.next = i < table->used ? shuf__ids_of(ids, table->slots[i - 1].number) : 0;
    page.lease = pointers;
    reply.body_case = SHUF__REPLY__BODY_LEASES;
    reply.leases = &page;
    shuf__session_reply(session, &reply, NULL, NULL);
}
