/* SPDX-License-Identifier: MIT
 *
 * The public calls about the daemon: its state, its metrics, its leases, and the results that it
 * drops.
 */
#include "arguments.h"
#include "call.h"
#include "request_message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The state ---- */

/* Inserts by bytes, largest first; drops the smallest user of a full array. */
static void add_user(shuf_daemon *to, const Shuf__User *from)
{
    unsigned place = to->users;
    while (place > 0 && to->user[place - 1].bytes < from->bytes)
        place--;
    if (place == SHUF_USERS)
        return;
    unsigned moved = (to->users < SHUF_USERS ? to->users : SHUF_USERS - 1) - place;
    memmove(&to->user[place + 1], &to->user[place], moved * sizeof *to->user);
    to->user[place] = (shuf_user){
        .uid = from->uid,
        .clients = from->clients,
        .leases = from->leases,
        .blocks = from->blocks,
        .bytes = from->bytes,
        .idle = from->idle,
        .mapped = from->mapped,
        .mapped_pid = from->mapped_pid,
    };
    to->users = place + moved + 1;
}

static shuf_status read_status_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                     struct shuf__error *error)
{
    if (shuf__reply_check(reply, SHUF__REPLY__BODY_STATUS_REPLY, "a StatusReply", error))
        return error->status;
    const Shuf__StatusReply *from = reply->status_reply;
    shuf_daemon *to = trip->context;
    *to = (shuf_daemon){
        .pid = from->pid,
        .pid_namespace = from->pid_namespace,
        .uptime_ms = from->uptime_ms,
        .clients = from->clients,
        .client_limit = from->client_limit,
        .queued = from->queued,
        .queue_limit = from->queue_limit,
        .served = from->served,
        .memory_used = from->memory_used,
        .memory_limit = from->memory_limit,
        .host_used = from->host_used,
        .host_limit = from->host_limit,
        .blocks = from->blocks,
        .buffers = from->buffers,
        .host_idle = from->host_idle,
        .device_idle = from->device_idle,
        .host_idle_limit = from->host_idle_limit,
        .device_idle_limit = from->device_idle_limit,
        .pending_free = from->pending_free,
        .leases = from->leases,
        .hits = from->hits,
        .joined = from->joined,
        .computed = from->computed,
        .computed_on_host = from->computed_on_host,
        .evicted = from->evicted,
        .log_dropped = from->log_dropped,
        .other_users = from->other_users,
        .copies_host = from->copies_host,
    };
    for (size_t i = 0; i < from->n_users; i++)
        add_user(to, from->users[i]);
    shuf__copy_string(to->version, sizeof to->version, from->daemon);
    shuf__copy_string(to->backend, sizeof to->backend, from->backend);
    shuf__copy_string(to->device, sizeof to->device, from->device);
    shuf__copy_string(to->device_id, sizeof to->device_id, from->device_id);
    shuf__copy_string(to->metrics, sizeof to->metrics, from->metrics);
    shuf__copy_string(to->lending_fault, sizeof to->lending_fault, from->lending_fault);
    shuf__copy_string(to->gpu_fault, sizeof to->gpu_fault, from->gpu_fault);
    shuf__copy_string(to->reload_fault, sizeof to->reload_fault, from->reload_fault);
    shuf__copy_string(to->metrics_fault, sizeof to->metrics_fault, from->metrics_fault);
    shuf__copy_string(to->configuration, sizeof to->configuration, from->configuration);
    return SHUF_OK;
}

shuf_status shuf_daemon_status(shuf *handle, shuf_daemon *daemon)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(daemon));
    if (!call)
        return SHUF_INVALID;
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    struct shuf__round_trip trip = {
        .request = &request, .read_reply = read_status_reply, .context = daemon};
    return shuf__call_run(handle, &trip);
}

/* ---- The metrics ---- */

enum { METRICS_MAX = 64 << 20 }; /* bytes: no daemon has a longer text */

/* The text is the payload of the reply. */
static shuf_status read_metrics_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                      struct shuf__error *error)
{
    if (shuf__reply_check(reply, SHUF__REPLY__BODY_METRICS, "a MetricsReply", error))
        return error->status;
    if (reply->payload_bytes > METRICS_MAX)
        return shuf__fail(error, SHUF_PROTOCOL, "metrics of %" PRIu64 " bytes: expected at most %d",
                          reply->payload_bytes, METRICS_MAX);
    trip->payload_bytes = reply->payload_bytes;
    trip->memory = malloc(reply->payload_bytes + 1);
    if (!trip->memory)
        return shuf__fail(error, SHUF_NO_MEMORY, "metrics: out of memory");
    trip->memory[reply->payload_bytes] = '\0';
    return SHUF_OK;
}

/* Another daemon, or the same one later, has another text. */
static void forget_text(struct shuf__round_trip *trip)
{
    free(trip->memory);
    trip->memory = NULL;
    trip->delivered = 0;
}

shuf_status shuf_daemon_metrics(shuf *handle, shuf_metrics_format format, char **text)
{
    Shuf__Metrics metrics = SHUF__METRICS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(text));
    if (!call)
        return SHUF_INVALID;
    *text = NULL;
    if (format != SHUF_PROMETHEUS && format != SHUF_OPENMETRICS)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "format %d: expected SHUF_PROMETHEUS or SHUF_OPENMETRICS", (int)format);
    metrics.openmetrics = format == SHUF_OPENMETRICS;
    request.body_case = SHUF__REQUEST__BODY_METRICS;
    request.metrics = &metrics;
    struct shuf__round_trip trip = {
        .request = &request, .read_reply = read_metrics_reply, .prepare_retry = forget_text};
    shuf_status status = shuf__call_run(handle, &trip);
    if (status != SHUF_OK)
        forget_text(&trip);
    *text = (char *)trip.memory;
    return status;
}

/* ---- The leases ---- */

/* They are read page by page: a daemon may hold more leases than fit one message. */

/* A page stays in the connection's arena until the next request. */
static shuf_status read_page(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                             struct shuf__error *error)
{
    if (shuf__reply_check(reply, SHUF__REPLY__BODY_LEASES, "a LeasesReply", error))
        return error->status;
    *(const Shuf__LeasesReply **)trip->context = reply->leases;
    return SHUF_OK;
}

static shuf_lease_entry read_entry(const Shuf__LeaseEntry *from)
{
    shuf_lease_entry entry = {
        .id = from->id,
        .pid = from->pid,
        .uid = from->uid,
        .transport = shuf__transport_of_wire(from->transport),
        .prefetch = from->prefetch,
        .ready = from->ready,
        .age_ms = from->age_ms,
        .block = from->block,
        .block_bytes = from->block_bytes,
        .rows = from->rows,
        .count = from->count,
        .request = {.kind = SHUF_OTHER_KIND},
    };
    if (from->request)
        entry.request = shuf__request_of_message(from->request);
    return entry;
}

static shuf_status visit_page(shuf *handle, const Shuf__LeasesReply *page, shuf_lease_visitor visit,
                              void *context)
{
    for (size_t i = 0; i < page->n_lease; i++) {
        shuf_lease_entry entry = read_entry(page->lease[i]);
        const struct shuf__error before = shuf__handle_begin_callback(handle);
        const bool continues = visit(context, &entry);
        shuf__handle_end_callback(handle, &before);
        if (!continues)
            return shuf__fail(&handle->error, SHUF_CANCELLED,
                              "stopped by its visitor at lease %" PRIu64, entry.id);
    }
    return SHUF_OK;
}

shuf_status shuf_leases(shuf *handle, shuf_lease_visitor visit, void *context)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(visit));
    if (!call)
        return SHUF_INVALID;
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    const Shuf__LeasesReply *page;
    uint64_t after = 0;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    do {
        leases.after = after;
        struct shuf__round_trip trip = {
            .request = &request, .read_reply = read_page, .context = &page};
        if (shuf__call_run(handle, &trip) || visit_page(handle, page, visit, context))
            return handle->error.status;
        after = page->next;
    } while (after != 0 && after != leases.after);
    return after == 0
               ? SHUF_OK
               : shuf__fail(&handle->error, SHUF_PROTOCOL,
                            "reply next %" PRIu64 ": expected another page than before", after);
}

/* ---- Unused results ---- */

static shuf_status read_drop_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                   struct shuf__error *error)
{
    if (shuf__reply_check(reply, SHUF__REPLY__BODY_DROP, "a DropReply", error))
        return error->status;
    *(shuf_dropped *)trip->context = (shuf_dropped){
        .results = reply->drop->results,
        .host_bytes = reply->drop->host_bytes,
        .device_bytes = reply->drop->device_bytes,
        .mapped_bytes = reply->drop->mapped_bytes,
    };
    return SHUF_OK;
}

static shuf_status write_owner(shuf_owner owner, uint32_t uid, Shuf__Drop *drop,
                               struct shuf__error *error)
{
    switch (owner) {
    case SHUF_OWN:
        return SHUF_OK;
    case SHUF_USER:
        drop->of_case = SHUF__DROP__OF_UID;
        drop->uid = uid;
        return SHUF_OK;
    case SHUF_ALL:
        drop->of_case = SHUF__DROP__OF_ALL;
        drop->all = true;
        return SHUF_OK;
    }
    return shuf__fail(error, SHUF_INVALID, "owner %d: expected SHUF_OWN, SHUF_USER or SHUF_ALL",
                      (int)owner);
}

shuf_status shuf_drop(shuf *handle, shuf_owner owner, uint32_t uid, shuf_dropped *dropped)
{
    Shuf__Drop drop = SHUF__DROP__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    shuf_dropped ignored;
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    if (write_owner(owner, uid, &drop, &handle->error))
        return handle->error.status;
    request.body_case = SHUF__REQUEST__BODY_DROP;
    request.drop = &drop;
    struct shuf__round_trip trip = {.request = &request,
                                    .read_reply = read_drop_reply,
                                    .context = dropped ? dropped : &ignored};
    return shuf__call_run(handle, &trip);
}
