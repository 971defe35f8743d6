/* SPDX-License-Identifier: MIT
 *
 * The public call that asks the daemon how it is.
 */
#include "call.h"

static shuf_status accept_status(struct shuf__call *call, const Shuf__Reply *reply,
                                 struct shuf__error *error)
{
    if (reply->body_case != SHUF__REPLY__BODY_STATUS_REPLY)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a StatusReply",
                          (int)reply->body_case);
    const Shuf__StatusReply *from = reply->status_reply;
    shuf_daemon *to = call->answer;
    *to = (shuf_daemon){
        .pid = from->pid,
        .uptime_ms = from->uptime_ms,
        .clients = from->clients,
        .queued = from->queued,
        .queue_limit = from->queue_limit,
        .served = from->served,
        .memory_used = from->memory_used,
        .memory_limit = from->memory_limit,
    };
    shuf__copy_word(to->version, sizeof to->version, from->daemon);
    shuf__copy_word(to->backend, sizeof to->backend, from->backend);
    shuf__copy_word(to->device, sizeof to->device, from->device);
    shuf__copy_word(to->device_id, sizeof to->device_id, from->device_id);
    return SHUF_OK;
}

shuf_status shuf_daemon_status(shuf *handle, shuf_daemon *daemon)
{
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    struct shuf__call call = {.request = &request, .accept = accept_status, .answer = daemon};
    return shuf__call_run(handle, &call);
}
