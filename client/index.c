/* SPDX-License-Identifier: MIT
 *
 * The public call that looks up single places of a permutation. More than a
 * message holds are asked for in several.
 */
#include "algorithm.h"
#include "call.h"
#include "parse.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)SHUF_LOOKUPS == (int)SHUF__LOOK_UPS_MAX, "shuf.h tells what a message holds");

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

/* What means nothing here would be passed over in silence. */
static shuf_status check_fields(const shuf_permutation *what, shuf_direction direction,
                                struct shuf__error *error)
{
    const struct {
        const char *field;
        uint64_t value, most;
    } fields[] = {
        {"epochs", what->epochs, 1},
        {"offset", what->offset, 0},
        {"count", what->count, 0},
        {"stride", what->stride, 0},
        {"rank", what->rank, 0},
        {"world", what->world, 0},
        {"drop_last", what->drop_last, 0},
        {"dtype", (uint64_t)what->dtype, 0},
        {"fingerprint", what->fingerprint, 0},
    };
    if ((unsigned)what->view > SHUF_VIEW_SHARD)
        return shuf__fail(error, SHUF_INVALID, "view %d: expected ALL", (int)what->view);
    if (what->view != SHUF_VIEW_ALL)
        return refuse_view(what->view == SHUF_VIEW_SLICE ? "SLICE" : "SHARD", direction, error);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value > fields[i].most)
            return shuf__fail(error, SHUF_INVALID, "%s %" PRIu64 ": expected %s with index",
                              fields[i].field, fields[i].value, fields[i].most ? "at most 1" : "0");
    return SHUF_OK;
}

static shuf_status check(const shuf_permutation *what, shuf_direction direction, const uint64_t *at,
                         size_t count, const uint64_t *out, struct shuf__error *error)
{
    if (direction != SHUF_FORWARD && direction != SHUF_INVERSE)
        return shuf__fail(error, SHUF_INVALID, "direction %d: expected FORWARD or INVERSE",
                          (int)direction);
    if (count > 0 && (!at || !out))
        return shuf__fail(error, SHUF_INVALID, "%s NULL: expected %zu numbers", at ? "out" : "at",
                          count);
    struct shuf__request request = {.look_up = {.permutation = {.n = what->n}}};
    if (check_fields(what, direction, error) ||
        shuf__algorithm_parse(what->algorithm, &request.look_up.permutation.algorithm, error))
        return error->status;
    return shuf__look_up_make(&request, at, count, error);
}

/* Where one request's answer goes. */
struct answer {
    uint64_t n, *out;
    size_t count;
    char algorithm[32]; /* of the first, for all that follow: another daemon's default may differ */
};

static shuf_status accept_places(struct shuf__call *call, const Shuf__Reply *reply,
                                 struct shuf__error *error)
{
    struct answer *answer = call->answer;
    if (reply->body_case != SHUF__REPLY__BODY_INDEX)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected an IndexReply",
                          (int)reply->body_case);
    const Shuf__IndexReply *places = reply->index;
    if (places->n_value != answer->count)
        return shuf__fail(error, SHUF_PROTOCOL, "reply of %zu values: expected %zu",
                          places->n_value, answer->count);
    for (size_t i = 0; i < places->n_value; i++)
        if (places->value[i] >= answer->n)
            return shuf__fail(error, SHUF_PROTOCOL,
                              "reply value %" PRIu64 ": expected less than n = %" PRIu64,
                              places->value[i], answer->n);
    memcpy(answer->out, places->value, answer->count * sizeof *answer->out);
    shuf__copy_word(answer->algorithm, sizeof answer->algorithm, places->algorithm);
    return SHUF_OK;
}

static Shuf__Index index_of(const shuf_permutation *what, shuf_direction direction)
{
    Shuf__Index index = SHUF__INDEX__INIT;
    if (what->algorithm)
        index.algorithm = (char *)(uintptr_t)what->algorithm; /* only read */
    index.n = what->n;
    index.seed = what->seed;
    index.epoch = what->epoch;
    index.inverse = direction == SHUF_INVERSE;
    return index;
}

shuf_status shuf_index(shuf *handle, const shuf_permutation *what, shuf_direction direction,
                       const uint64_t *at, size_t count, uint64_t *out)
{
    Shuf__Index index = index_of(what, direction);
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct answer answer = {.n = what->n};
    struct shuf__call call = {.request = &request, .accept = accept_places, .answer = &answer};
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &index;
    if (check(what, direction, at, count, out, &handle->error))
        return handle->error.status;
    handle->error = (struct shuf__error){0};
    for (size_t done = 0; done < count; done += answer.count) {
        answer.count = count - done < SHUF__LOOK_UPS_MAX ? count - done : SHUF__LOOK_UPS_MAX;
        answer.out = out + done;
        index.at = (uint64_t *)(uintptr_t)(at + done); /* only read */
        index.n_at = answer.count;
        if (shuf__call_run(handle, &call))
            return handle->error.status;
        index.algorithm = answer.algorithm;
    }
    return SHUF_OK;
}
