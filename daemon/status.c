/* SPDX-License-Identifier: MIT
 *
 * Status: what the daemon is and how busy, from counters alone, so that it
 * answers at once whatever the device is doing.
 */
#include "handlers.h"
#include "server.h"

#include <inttypes.h>
#include <unistd.h>

void shuf__handle_status(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__server *server = session->server;
    const struct shuf__backend *backend = shuf__engine_backend(server->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
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
    status.memory_used = atomic_load(&server->budget.used);
    status.memory_limit = atomic_load(&server->budget.limit);
    shuf__log(server->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: request %" PRIu64 ": status",
              (long)session->peer.pid, (long)session->peer.uid, session->id);
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    shuf__session_reply(session, &reply, NULL, 0);
}
