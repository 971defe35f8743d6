/* SPDX-License-Identifier: MIT
 *
 * Status: what the daemon is, how busy, and who has what of it, from counters
 * alone, so that it answers at once whatever the device is doing.
 */
#include "handlers.h"
#include "server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { USERS = 32 };

/* Those with most bytes first; of more users than that, the first that are met. */
struct usage {
    Shuf__User user[USERS], *pointers[USERS];
    size_t count;
};

static Shuf__User *user_of(struct usage *usage, uint32_t uid)
{
    static Shuf__User nobody;
    for (size_t i = 0; i < usage->count; i++)
        if (usage->user[i].uid == uid)
            return &usage->user[i];
    if (usage->count == USERS)
        return &nobody;
    Shuf__User *user = &usage->user[usage->count];
    *user = (Shuf__User)SHUF__USER__INIT;
    user->uid = uid;
    usage->pointers[usage->count++] = user;
    return user;
}

static int compare(const void *a, const void *b)
{
    const Shuf__User *const *x = a, *const *y = b;
    return (*x)->bytes < (*y)->bytes ? 1 : (*x)->bytes > (*y)->bytes ? -1 : 0;
}

static void count(const struct shuf__server *server, struct usage *usage)
{
    const struct shuf__allocation *allocation;
    const struct shuf__session *session;
    LIST_FOREACH (allocation, &server->allocations.list, link) {
        Shuf__User *user = user_of(usage, allocation->uid);
        user->blocks++;
        user->bytes += allocation->bytes;
    }
    LIST_FOREACH (session, &server->sessions, link) {
        Shuf__User *user = user_of(usage, session->peer.uid);
        user->clients++;
        user->leases += session->leased + session->prefetches;
    }
    qsort(usage->pointers, usage->count, sizeof usage->pointers[0], compare);
}

/* What results may hold of host memory is the limit of the moment. Of device memory it is that of
 * the last job: a driver may be asked while it is busy, but need not answer at once. */
static void tell_memory(struct shuf__server *server, const struct shuf__backend *backend,
                        Shuf__StatusReply *status)
{
    struct shuf__error ignored;
    struct shuf__allocations *allocations = &server->allocations;
    shuf__allocations_measure(allocations, SHUF__MEMORY_MEMFD, &ignored);
    const struct shuf__budget *own = &allocations->budgets[shuf__pool_of(backend->ops->own)];
    const struct shuf__budget *host = &allocations->budgets[SHUF__POOL_HOST];
    status->memory_used = own->used;
    status->memory_limit = own->limit;
    status->host_used = host->used;
    status->host_limit = host->limit;
    status->blocks = allocations->count;
    status->buffers = allocations->buffers;
    status->lingering = allocations->pending_free_count;
    status->idle = server->results.idle_bytes;
    status->leases = server->leases.count;
    status->hits = server->results.hits;
    status->joined = server->results.joined;
    status->computed = server->results.computed;
    status->evicted = server->results.evicted;
}

void shuf__handle_status(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__server *server = session->server;
    const struct shuf__backend *backend = shuf__engine_backend(server->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    struct usage usage = {.count = 0};
    (void)request; /* it has no fields */
    status.daemon = (char *)SHUF__DAEMON;
    status.backend = (char *)(uintptr_t)backend->ops->name;
    status.device = (char *)(uintptr_t)backend->device;
    status.device_id = (char *)(uintptr_t)backend->device_id;
    status.pid = (uint64_t)getpid();
    status.uptime_ms = uv_now(&server->loop) - server->start_ms;
    status.clients = server->clients;
    status.queued = shuf__engine_queued(server->engine);
    status.queue_limit = server->config->queue;
    status.served = server->served;
    tell_memory(server, backend, &status);
    count(server, &usage);
    status.n_users = usage.count;
    status.users = usage.pointers;
    shuf__log(server->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: request %" PRIu64 ": status",
              (long)session->peer.pid, (long)session->peer.uid, session->id);
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    shuf__session_reply(session, &reply, NULL, -1);
}
