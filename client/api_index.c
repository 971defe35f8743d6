/* SPDX-License-Identifier: MIT
 *
 * The public call that looks up single positions or values of a permutation. It splits a long list
 * into several requests.
 */
#include "arguments.h"
#include "call.h"
#include "request_message.h"
#include "result_message.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)SHUF_LOOKUPS == (int)SHUF__LOOK_UPS_MAX,
               "shuf.h documents the size of a message");

/* The reply of one request goes here. */
struct look_up_reply {
    uint64_t n, *out;
    size_t count;
    /* The algorithm of the first reply. The next requests name it, because another daemon may have
     * another default. */
    char algorithm[32];
};

static shuf_status read_look_ups(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                 struct shuf__error *error)
{
    struct look_up_reply *to = trip->context;
    if (shuf__reply_check(reply, SHUF__REPLY__BODY_INDEX, "an IndexReply", error))
        return error->status;
    const Shuf__IndexReply *from = reply->index;
    if (from->n_value != to->count)
        return shuf__fail(error, SHUF_PROTOCOL, "reply of %zu values: expected %zu", from->n_value,
                          to->count);
    for (size_t i = 0; i < from->n_value; i++)
        if (from->value[i] >= to->n)
            return shuf__fail(error, SHUF_PROTOCOL,
                              "reply value %" PRIu64 ": expected less than n = %" PRIu64,
                              from->value[i], to->n);
    memcpy(to->out, from->value, to->count * sizeof *to->out);
    shuf__copy_string(to->algorithm, sizeof to->algorithm, from->algorithm);
    return SHUF_OK;
}

shuf_status shuf_index(shuf *handle, const shuf_permutation *permutation, shuf_direction direction,
                       const uint64_t *at, size_t count, uint64_t *out)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(permutation));
    struct shuf__request checked;
    if (!call)
        return SHUF_INVALID;
    Shuf__Permutation named = shuf__name_permutation(permutation);
    Shuf__Index index = SHUF__INDEX__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct look_up_reply found = {.n = permutation->n};
    struct shuf__round_trip trip = {
        .request = &request, .read_reply = read_look_ups, .context = &found};
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &index;
    index.permutation = &named;
    index.inverse = direction == SHUF_INVERSE;
    if (shuf__look_up_arguments(permutation, direction, at, count, out, &checked, &handle->error))
        return handle->error.status;
    for (size_t done = 0; done < count; done += found.count) {
        found.count = count - done < SHUF__LOOK_UPS_MAX ? count - done : SHUF__LOOK_UPS_MAX;
        found.out = out + done;
        index.at = (uint64_t *)(uintptr_t)(at + done); /* only read */
        index.n_at = found.count;
        if (shuf__call_run(handle, &trip))
            return handle->error.status;
        named.algorithm = found.algorithm;
    }
    return SHUF_OK;
}
