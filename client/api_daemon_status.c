/* SPDX-License-Identifier: MIT
 *
 * The public call that reads the state of the daemon.
 */
#include "arguments.h"
#include "call.h"

#include <string.h>

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
    if (reply->body_case != SHUF__REPLY__BODY_STATUS_REPLY)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a StatusReply",
                          (int)reply->body_case);
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
