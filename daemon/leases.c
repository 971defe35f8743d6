/* SPDX-License-Identifier: MIT
 *
 * Leases: who holds what, a page at a time. What others ask for is not everybody's
 * business, so it tells users of their own, root and the daemon's user of all.
 */
#include "handlers.h"
#include "server.h"
#include "stream_plan.h"

#include <unistd.h>

enum { PAGE = 20 }; /* of at most about 190 bytes each: what a client reads at a time */

static bool may_see(const struct shuf__session *session, const struct shuf__lease *lease)
{
    uid_t uid = session->peer.uid;
    return uid == 0 || uid == geteuid() || uid == lease->session->peer.uid;
}

static void fill_permutation(const struct shuf__key *key, Shuf__LeaseEntry *entry)
{
    entry->algorithm = (char *)(uintptr_t)shuf__permute_algorithm_name(key->algorithm);
    entry->n = key->n;
    entry->epoch = key->epoch;
}

static void fill_shuffle(const struct shuf__key *key, Shuf__LeaseEntry *entry)
{
    fill_permutation(key, entry);
    entry->record = key->record;
    entry->inverse = key->inverse;
}

static void fill_stream(const struct shuf__key *key, Shuf__LeaseEntry *entry)
{
    entry->distribution = shuf__distribution_of(key->distribution);
    entry->method = shuf__method_of(key->distribution);
    entry->stream = key->epoch;
    entry->offset = key->offset;
    entry->dtype = shuf__dtype_of((enum shuf_number)key->number);
    entry->mean = key->mean;
    entry->std = key->std;
}

static void fill(const struct shuf__lease *lease, uint64_t now, Shuf__LeaseEntry *entry)
{
    const struct shuf__result *result = lease->result;
    const struct shuf__key *key = &result->key;
    *entry = (Shuf__LeaseEntry)SHUF__LEASE_ENTRY__INIT;
    entry->id = lease->id;
    entry->pid = (uint64_t)lease->session->peer.pid;
    entry->uid = lease->session->peer.uid;
    entry->transport = lease->transport;
    entry->prefetch = lease->prefetch;
    entry->ready = result->ready;
    entry->age_ms = now - lease->since_ms;
    entry->block = result->cell ? result->cell->id : 0; /* none before its turn */
    entry->block_bytes = result->cell ? result->cell->bytes : 0;
    entry->seed = key->seed;
    entry->rows = key->rows;
    entry->count = key->count;
    entry->buffer = key->role == SHUF__BUFFER;
    if (key->role == SHUF__BUFFER)
        return;
    if (key->record)
        fill_shuffle(key, entry);
    else if (key->distribution)
        fill_stream(key, entry);
    else
        fill_permutation(key, entry);
}

void shuf__handle_leases(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__server *server = session->server;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__LeasesReply page = SHUF__LEASES_REPLY__INIT;
    Shuf__LeaseEntry entries[PAGE], *pointers[PAGE];
    const struct shuf__lease *lease;
    TAILQ_FOREACH (lease, &server->leases.all, link) {
        if (lease->id <= request->leases->after || !may_see(session, lease))
            continue;
        if (page.n_lease == PAGE) {
            page.more = true;
            break;
        }
        fill(lease, uv_now(&server->loop), &entries[page.n_lease]);
        pointers[page.n_lease] = &entries[page.n_lease];
        page.n_lease++;
    }
    page.lease = pointers;
    reply.body_case = SHUF__REPLY__BODY_LEASES;
    reply.leases = &page;
    shuf__session_reply(session, &reply, NULL, -1);
}
