/* SPDX-License-Identifier: MIT
 *
 * See release_message.h.
 */
#include "release_message.h"

#include "round_trip.h"

void shuf__release_message_init(struct shuf__release_message *release, uint64_t lease)
{
    release->lease = lease;
    release->message = (Shuf__Release)SHUF__RELEASE__INIT;
    release->message.n_lease = 1;
    release->message.lease = &release->lease;
    release->message.unmapped = release->blocks;
}

static shuf_status read_release_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                      struct shuf__error *error)
{
    (void)trip;
    if (reply->body_case == SHUF__REPLY__BODY_RELEASE)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a ReleaseReply",
                      (int)reply->body_case);
}

shuf_status shuf__release_send(shuf *h, Shuf__Release *message, struct shuf__error *error)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    *error = (struct shuf__error){0};
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = message;
    struct shuf__round_trip trip = {.request = &request, .read_reply = read_release_reply};
    shuf_status status = shuf__round_trip_run(&h->connection, &trip, error);
    if (status == SHUF_NO_DAEMON)
        *error = (struct shuf__error){0};
    return error->status;
}

/* False if there is nothing to report, or no daemon. The message of a failure is in the handle. */
static bool report_unmapped(shuf *handle, uint64_t *blocks, size_t count)
{
    Shuf__Release message = SHUF__RELEASE__INIT;
    message.n_unmapped = count;
    message.unmapped = blocks;
    if (count == 0 || handle->connection.fd < 0)
        return false;
    shuf__release_send(handle, &message, &handle->error);
    return true;
}

bool shuf__release_idle_mappings(shuf *handle)
{
    uint64_t blocks[SHUF__UNMAPPED_MAX];
    return report_unmapped(handle, blocks, shuf__mappings_trim(&handle->mappings, blocks));
}

shuf_status shuf__release_above_limit(shuf *handle, uint64_t bytes)
{
    uint64_t blocks[SHUF__UNMAPPED_MAX];
    report_unmapped(handle, blocks, shuf__mappings_set_limit(&handle->mappings, bytes, blocks));
    return handle->error.status;
}

void shuf__release_everything(shuf *handle)
{
    Shuf__Release message = SHUF__RELEASE__INIT;
    struct shuf__error ignored;
    message.everything = true;
    if (handle->connection.fd >= 0)
        shuf__release_send(handle, &message, &ignored);
}
