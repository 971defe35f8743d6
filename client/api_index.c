/* SPDX-License-Identifier: MIT
 *
 * The public call that looks up single positions or values of a permutation. It splits a long list
 * into several requests.
 */
#include "algorithm.h"
#include "arguments.h"
#include "call.h"
#include "check_names.h"
#include "dtype.h"
#include "overlap.h"
#include "parse.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)SHUF_LOOKUPS == (int)SHUF__LOOK_UPS_MAX,
               "shuf.h documents the size of a message");

static shuf_status refuse_view(const char *view, shuf_direction direction,
                               struct shuf__error *error)
{
    if (direction == SHUF_INVERSE)
        return shuf__fail(error, SHUF_INVALID,
                          "view %s: the inverse of a slice is not defined, expected the whole "
                          "permutation",
                          view);
    return shuf__fail(error, SHUF_INVALID,
                      "view %s: positions are those of the whole permutation, expected view ALL",
                      view);
}

/* Rejects fields that have no effect on a look-up. */
static shuf_status check_unused_fields(const shuf_permutation *permutation,
                                       shuf_direction direction, struct shuf__error *error)
{
    char text[SHUF__DTYPE_TEXT];
    const struct {
        const char *field;
        uint64_t value, most;
    } fields[] = {
        {"epochs", permutation->epochs, 1},
        {"offset", permutation->offset, 0},
        {"count", permutation->count, 0},
        {"stride", permutation->stride, 0},
        {"rank", permutation->rank, 0},
        {"world", permutation->world, 0},
        {"step", permutation->step, 0},
        {"drop_last", permutation->drop_last, 0},
        {"fingerprint", permutation->fingerprint, 0},
    };
    if ((unsigned)permutation->view > SHUF_VIEW_SHARD)
        return shuf__fail(error, SHUF_INVALID, "view %d: expected ALL", (int)permutation->view);
    if (permutation->view != SHUF_VIEW_ALL)
        return refuse_view(permutation->view == SHUF_VIEW_SLICE ? "SLICE" : "SHARD", direction,
                           error);
    if (permutation->dtype != SHUF_AUTO)
        return shuf__fail(error, SHUF_INVALID, "dtype %s: expected auto with index",
                          shuf__dtype_label((int)permutation->dtype, text));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value > fields[i].most)
            return shuf__fail(error, SHUF_INVALID, "%s %" PRIu64 ": expected %s with index",
                              fields[i].field, fields[i].value, fields[i].most ? "at most 1" : "0");
    return SHUF_OK;
}

static shuf_status check_arguments(const shuf_permutation *permutation, shuf_direction direction,
                                   const uint64_t *at, size_t count, const uint64_t *out,
                                   struct shuf__error *error)
{
    if (direction != SHUF_FORWARD && direction != SHUF_INVERSE)
        return shuf__fail(error, SHUF_INVALID, "direction %d: expected FORWARD or INVERSE",
                          (int)direction);
    if (count > 0 && (!at || !out))
        return shuf__fail(error, SHUF_INVALID, "%s NULL: expected %zu number%s", at ? "out" : "at",
                          count, shuf__plural(count));
    if (at != out && shuf__overlap(at, out, count * sizeof *at))
        return shuf__fail(error, SHUF_INVALID,
                          "at and out overlap: expected the same array, or %zu number%s each",
                          count, shuf__plural(count));
    struct shuf__request request = {
        .kind = SHUF__LOOK_UP,
        .look_up = {.permutation = {.n = permutation->n, .seed = permutation->seed}}};
    if (check_unused_fields(permutation, direction, error) ||
        shuf__check_names(permutation->algorithm, permutation->key, error) ||
        shuf__algorithm_parse(permutation->algorithm, &request.look_up.permutation.algorithm,
                              error) ||
        shuf__request_name_key(&request, permutation->key, error))
        return error->status;
    return shuf__look_up_make(&request, at, count, error);
}

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
    if (reply->body_case != SHUF__REPLY__BODY_INDEX)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected an IndexReply",
                          (int)reply->body_case);
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

static Shuf__Permutation name_permutation(const shuf_permutation *from)
{
    Shuf__Permutation permutation = SHUF__PERMUTATION__INIT;
    if (from->algorithm)
        permutation.algorithm = (char *)(uintptr_t)from->algorithm; /* only read */
    if (from->key)
        permutation.key = (char *)(uintptr_t)from->key; /* only read */
    permutation.n = from->n;
    permutation.seed = from->seed;
    permutation.epoch = from->epoch;
    return permutation;
}

shuf_status shuf_index(shuf *handle, const shuf_permutation *permutation, shuf_direction direction,
                       const uint64_t *at, size_t count, uint64_t *out)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(permutation));
    if (!call)
        return SHUF_INVALID;
    Shuf__Permutation named = name_permutation(permutation);
    Shuf__Index index = SHUF__INDEX__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct look_up_reply found = {.n = permutation->n};
    struct shuf__round_trip trip = {
        .request = &request, .read_reply = read_look_ups, .context = &found};
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &index;
    index.permutation = &named;
    index.inverse = direction == SHUF_INVERSE;
    if (check_arguments(permutation, direction, at, count, out, &handle->error))
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
