/* SPDX-License-Identifier: MIT
 *
 * The public call that frees unused results of the daemon.
 */
#include "arguments.h"
#include "call.h"

#include <inttypes.h>

static shuf_status read_drop_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                   struct shuf__error *error)
{
    if (reply->body_case != SHUF__REPLY__BODY_DROP)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a DropReply",
                          (int)reply->body_case);
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
