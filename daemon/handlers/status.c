/* SPDX-License-Identifier: MIT
 *
 * Status: the daemon, its load, and its users. It reads counters only, so it answers at once
 * while the device is busy.
 */
#include "handlers.h"
#include "service.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { USERS = 32 };

/* The users with most bytes first. Users beyond the first 32 found are left out. */
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

static int compare_users(const void *a, const void *b)
{
    const Shuf__User *const *x = a, *const *y = b;
    return (*x)->bytes < (*y)->bytes ? 1 : (*x)->bytes > (*y)->bytes ? -1 : 0;
}

static void count(const struct shuf__service *service, struct usage *usage)
{
    const struct shuf__allocation *allocation;
    const struct shuf__session *session;
    LIST_FOREACH (allocation, &service->allocations.list, link) {
        if (allocation->uid == SHUF__NO_USER)
            continue;
        Shuf__User *user = user_of(usage, allocation->uid);
        user->blocks++;
        user->bytes += allocation->bytes;
        user->idle += allocation->size_class ? allocation->bytes : 0;
    }
    LIST_FOREACH (session, &service->sessions.list, link) {
        Shuf__User *user = user_of(usage, session->client.uid);
        user->clients++;
        user->leases += session->leases.leased + session->leases.prefetches;
    }
    qsort(usage->pointers, usage->count, sizeof usage->pointers[0], compare_users);
}

/* The limit of host memory is measured now. The limit of device memory is that of the last job: a
 * busy driver may not answer at once. */
static void describe_memory(struct shuf__service *service, const struct shuf__backend *backend,
                            Shuf__StatusReply *status)
{
    struct shuf__error ignored;
    struct shuf__allocations *allocations = &service->allocations;
    shuf__allocations_measure(allocations, SHUF__MEMORY_MEMFD, &ignored);
    const struct shuf__budget *own = &allocations->budgets[shuf__side_of(backend->ops->own)];
    const struct shuf__budget *host = &allocations->budgets[SHUF__SIDE_HOST];
    status->memory_used = own->used;
    status->memory_limit = own->limit;
    status->host_used = host->used;
    status->host_limit = host->limit;
    status->blocks = allocations->count;
    status->buffers = allocations->buffers;
    status->pending_free = allocations->pending_free_count;
    status->host_idle = service->pool.idle_bytes[SHUF__SIDE_HOST];
    status->host_idle_limit = host->idle_limit;
    status->device_idle_limit = allocations->budgets[SHUF__SIDE_DEVICE].idle_limit;
    status->device_idle = service->pool.idle_bytes[SHUF__SIDE_DEVICE];
    status->leases = service->leases.count;
    status->hits = service->cache.hits;
    status->joined = service->cache.joined;
    status->computed = service->cache.computed;
    status->evicted = service->pool.evicted;
}

void shuf__handle_status(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__service *service = shuf__service_of(session);
    const struct shuf__backend *backend = shuf__engine_backend(service->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    struct usage usage = {.count = 0};
    (void)request; /* it has no fields */
    status.daemon = (char *)SHUF__DAEMON;
    status.backend = (char *)(uintptr_t)backend->ops->name;
    status.device = (char *)(uintptr_t)backend->device;
    status.device_id = (char *)(uintptr_t)backend->device_id;
    status.pid = (uint64_t)getpid();
    status.uptime_ms = uv_now(service->loop) - service->start_ms;
    status.clients = service->sessions.count;
    status.queued = shuf__engine_queued(service->engine);
    status.queue_limit = service->config->queue;
    status.served = service->served;
    describe_memory(service, backend, &status);
    count(service, &usage);
    status.n_users = usage.count;
    status.users = usage.pointers;
    shuf__log(service->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: request %" PRIu64 ": status",
              (long)session->client.pid, (long)session->client.uid, session->id);
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    shuf__session_reply(session, &reply, NULL, -1);
}
