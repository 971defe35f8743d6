/* SPDX-License-Identifier: MIT
 *
 * See look_up_arguments.h.
 */
#include "look_up_arguments.h"

#include "check_names.h"
#include "dtype.h"
#include "overlap.h"
#include "parse.h"
#include "request_message.h"

#include <inttypes.h>

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

shuf_status shuf__look_up_request(const shuf_permutation *permutation, shuf_direction direction,
                                  struct shuf__request *request, struct shuf__error *error)
{
    if (direction != SHUF_FORWARD && direction != SHUF_INVERSE)
        return shuf__fail(error, SHUF_INVALID, "direction %d: expected FORWARD or INVERSE",
                          (int)direction);
    Shuf__Permutation named = shuf__name_permutation(permutation);
    Shuf__Index index = SHUF__INDEX__INIT;
    index.permutation = &named;
    index.inverse = direction == SHUF_INVERSE;
    if (check_unused_fields(permutation, direction, error) ||
        shuf__check_names(permutation->algorithm, permutation->key, error))
        return error->status;
    return shuf__parse_index(&index, request, error);
}

shuf_status shuf__check_places(const void *at, const void *out, size_t count, unsigned width,
                               struct shuf__error *error)
{
    return at == out || !shuf__overlap(at, out, count * width)
               ? SHUF_OK
               : shuf__fail(error, SHUF_INVALID,
                            "at and out overlap: expected the same array, or %zu number%s each",
                            count, shuf__plural(count));
}

shuf_status shuf__look_up_arguments(const shuf_permutation *permutation, shuf_direction direction,
                                    const uint64_t *at, size_t count, const uint64_t *out,
                                    struct shuf__request *request, struct shuf__error *error)
{
    if (count > 0 && (!at || !out))
        return shuf__fail(error, SHUF_INVALID, "%s NULL: expected %zu number%s", at ? "out" : "at",
                          count, shuf__plural(count));
    if (shuf__check_places(at, out, count, sizeof *at, error) ||
        shuf__look_up_request(permutation, direction, request, error))
        return error->status;
    return shuf__look_up_make(request, at, count, error);
}
