/* SPDX-License-Identifier: MIT
 *
 * Drop: frees the idle blocks of a user, and the prefetched results of the connection. Users may
 * free only their own blocks. Root and the daemon's user may free the blocks of all users.
 */
#include "handlers.h"
#include "service.h"

#include <inttypes.h>

static shuf_status check_drop(const struct shuf__session *session, const Shuf__Drop *drop,
                              struct shuf__error *error)
{
    const uint32_t own = session->client.uid;
    const bool all = drop->of_case == SHUF__DROP__OF_ALL;
    const bool other = drop->of_case == SHUF__DROP__OF_UID && drop->uid != own;
    if ((!all && !other) || shuf__session_is_privileged(session))
        return SHUF_OK;
    if (all)
        return shuf__fail(error, SHUF_DENIED,
                          "all users: expected root or the daemon's user, not uid %" PRIu32, own);
    return shuf__fail(error, SHUF_DENIED,
                      "user %" PRIu32 ": expected your own uid, %" PRIu32
                      "; only root and the daemon's user drop the results of others",
                      drop->uid, own);
}

static void reply_drop(struct shuf__session *session, const struct shuf__dropped *dropped)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__DropReply body = SHUF__DROP_REPLY__INIT;
    body.results = dropped->results;
    body.host_bytes = dropped->bytes[SHUF__SIDE_HOST];
    body.device_bytes = dropped->bytes[SHUF__SIDE_DEVICE];
    body.mapped_bytes = dropped->mapped;
    reply.body_case = SHUF__REPLY__BODY_DROP;
    reply.drop = &body;
    shuf__session_reply(session, &reply, NULL, NULL);
}

void shuf__handle_drop(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    const Shuf__Drop *drop = request->drop;
    if (check_drop(session, drop, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    const bool all = drop->of_case == SHUF__DROP__OF_ALL;
    const uint32_t uid = drop->of_case == SHUF__DROP__OF_UID ? drop->uid : session->client.uid;
    if (all || uid == session->client.uid)
        shuf__lease_end_prefetches(&session->leases);
    const struct shuf__dropped dropped =
        shuf__pool_drop(&shuf__service_of(session)->pool, all, uid);
    reply_drop(session, &dropped);
}
