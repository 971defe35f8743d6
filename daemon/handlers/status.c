/* SPDX-License-Identifier: MIT
 *
 * Status: describes the daemon, its load, and its users. It does not use the device, so it answers
 * at once even if the device is busy. Users see their own row and the totals. Root and the daemon's
 * user see all rows.
 */
#include "handlers.h"
#include "memory/transport.h"
#include "pid_namespace.h"
#include "service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { METRICS_PLACES = SHUF__PUBLICATIONS * sizeof(struct shuf__publication) };

struct users {
    Shuf__User user[SHUF__ACCOUNTS_LISTED], *pointers[SHUF__ACCOUNTS_LISTED];
};

/* The mapped bytes of both sides, and the process that has most bytes mapped on one side. */
static void describe_mapped(const struct shuf__account *account, Shuf__User *user)
{
    const uint64_t *most = account->most_mapped;
    const enum shuf__side side =
        most[SHUF__SIDE_HOST] >= most[SHUF__SIDE_DEVICE] ? SHUF__SIDE_HOST : SHUF__SIDE_DEVICE;
    user->mapped = account->mapped[SHUF__SIDE_HOST] + account->mapped[SHUF__SIDE_DEVICE];
    user->mapped_pid = (uint64_t)account->mapped_pid[side];
}

static void describe_user(const struct shuf__account *account, Shuf__User *user)
{
    *user = (Shuf__User)SHUF__USER__INIT;
    user->uid = account->uid;
    user->clients = account->clients;
    user->leases = shuf__account_leases(account);
    user->blocks = account->blocks;
    user->bytes = shuf__account_bytes(account);
    user->idle = shuf__account_idle(account);
    describe_mapped(account, user);
}

static void describe_users(const struct shuf__session *session, struct users *users,
                           Shuf__StatusReply *status)
{
    struct shuf__allocations *allocations = &shuf__service_of(session)->allocations;
    shuf__mapped_bytes_read(allocations);
    const struct shuf__accounts_listed listed = shuf__accounts_list(
        &allocations->accounts, shuf__session_is_privileged(session) ? NULL : &session->client.uid);
    for (unsigned i = 0; i < listed.count; i++) {
        describe_user(listed.account[i], &users->user[i]);
        users->pointers[i] = &users->user[i];
    }
    status->n_users = listed.count;
    status->users = users->pointers;
    status->other_users = listed.others;
}

/* Measures the limit of host memory now. For device memory it takes the limit that the last job has
 * measured, because a busy driver may not answer at once. */
static void describe_memory(struct shuf__service *service, const struct shuf__backend *backend,
                            Shuf__StatusReply *status)
{
    struct shuf__allocations *allocations = &service->allocations;
    shuf__allocations_refresh(allocations, SHUF__MEMORY_MEMFD);
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
    status->leases = service->leases.table.count;
    status->hits = service->cache.hits;
    status->joined = service->cache.joined;
    status->computed = service->cache.computed;
    status->computed_on_host = service->cache.computed_on_host;
    status->evicted = service->pool.evicted;
}

/* The places that work, and the first fault of another one. */
static void describe_metrics(struct shuf__service *service, char places[METRICS_PLACES],
                             Shuf__StatusReply *status)
{
    size_t used = 0;
    places[0] = '\0';
    status->metrics = places;
    for (int i = 0; i < SHUF__PUBLICATIONS; i++) {
        struct shuf__publication *p = &service->publications[i];
        if (p->fault[0] && !status->metrics_fault[0])
            status->metrics_fault = p->fault;
        else if (!p->fault[0] && p->place[0])
            used += (size_t)snprintf(places + used, METRICS_PLACES - used, "%s%s",
                                     used > 0 ? ", " : "", p->place);
    }
}

void shuf__handle_status(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__service *service = shuf__service_of(session);
    const struct shuf__backend *backend = shuf__engine_backend(service->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    struct users users;
    char places[METRICS_PLACES];
    (void)request; /* it has no fields */
    status.daemon = (char *)SHUF__DAEMON;
    status.backend = (char *)(uintptr_t)backend->ops->name;
    status.device = (char *)(uintptr_t)backend->device;
    status.device_id = (char *)(uintptr_t)backend->device_id;
    status.configuration = (char *)(uintptr_t)service->config->file;
    status.pid = (uint64_t)getpid();
    status.pid_namespace = shuf__pid_namespace();
    status.uptime_ms = uv_now(service->loop) - service->start_ms;
    status.clients = service->sessions.count;
    status.client_limit = service->sessions.limit;
    status.queued = shuf__engines_queued(service->engine);
    status.queue_limit = service->config->queue;
    status.served = service->served;
    status.lending_fault = (char *)(uintptr_t)shuf__transport_lending_fault();
    status.reload_fault = service->reload_fault;
    status.gpu_fault = service->gpu_fault;
    status.copies_host = *status.lending_fault != '\0';
    status.log_dropped = shuf__log_losses(service->log).dropped;
    describe_metrics(service, places, &status);
    describe_memory(service, backend, &status);
    describe_users(session, &users, &status);
    shuf__log_client(service->log, SHUF__LOG_DEBUG,
                     "client pid %ld, uid %ld: request %" PRIu64 ": status",
                     (long)session->client.pid, (long)session->client.uid, session->id);
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    shuf__session_reply(session, &reply, NULL, NULL);
}
