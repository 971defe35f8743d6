/* SPDX-License-Identifier: MIT
 *
 * Hello: checks the version of the protocol. The refusal of a wrong version names both versions.
 */
#include "handlers.h"
#include "service.h"

#include <inttypes.h>

void shuf__handle_hello(struct shuf__session *session, const Shuf__Request *request)
{
    const struct shuf__backend *backend = shuf__engine_backend(session->all->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__HelloReply hello = SHUF__HELLO_REPLY__INIT;
    struct shuf__error error;
    hello.version = SHUF__PROTOCOL_VERSION;
    hello.daemon = (char *)SHUF__DAEMON;
    hello.backend = (char *)(uintptr_t)backend->ops->name;
    hello.device = (char *)(uintptr_t)backend->device;
    reply.body_case = SHUF__REPLY__BODY_HELLO;
    reply.hello = &hello;
    if (request->hello->version != SHUF__PROTOCOL_VERSION) {
        shuf__fail(&error, SHUF_VERSION,
                   "protocol version %" PRIu32 ": expected %d, which " SHUF__DAEMON " speaks",
                   request->hello->version, SHUF__PROTOCOL_VERSION);
        shuf__session_refuse(session, &reply, &error);
        return;
    }
    session->greeted = true;
    shuf__log_client(session->all->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: %.64s",
                     (long)session->client.pid, (long)session->client.uid, request->hello->client);
    shuf__session_reply(session, &reply, NULL, NULL);
}
