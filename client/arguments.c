/* SPDX-License-Identifier: MIT
 *
 * See arguments.h.
 */
#include "arguments.h"

#include "call.h"
#include "dtype.h"
#include "handle.h"
#include "request_message.h"
#include "result_message.h"

#include <inttypes.h>
#include <stdatomic.h>

/* The state of this thread. Its address also identifies the thread. */
static _Thread_local struct {
    struct shuf__error error;
    const shuf *refused; /* a handle that another thread used: the message of the failed call is
                          * here */
} own;

struct shuf__error *shuf__error_of(shuf *handle)
{
    return handle && handle != own.refused ? &handle->error : &own.error;
}

static shuf_status check_pointers(const struct shuf__argument *arguments, struct shuf__error *error)
{
    for (; arguments->name; arguments++)
        if (arguments->is_null)
            return shuf__fail(error, SHUF_INVALID, "%s NULL: expected the address of one",
                              arguments->name);
    return SHUF_OK;
}

struct shuf__error *shuf__begin_local(const struct shuf__argument *arguments)
{
    struct shuf__error *error = shuf__error_of(NULL);
    *error = (struct shuf__error){0};
    check_pointers(arguments, error);
    return error;
}

/* False if another thread is in a call. After fork(), `user` may name a thread of the parent, so
 * the child ignores it. */
static bool enter_handle(shuf *handle)
{
    const void *user = NULL;
    if (atomic_load_explicit(&handle->user, memory_order_relaxed) != &own &&
        !atomic_compare_exchange_strong_explicit(&handle->user, &user, &own, memory_order_acquire,
                                                 memory_order_relaxed)) {
        if (shuf__handle_is_ours(handle))
            return false;
        atomic_store_explicit(&handle->user, &own, memory_order_relaxed);
        handle->depth = 0;
    }
    if (handle->depth++ == 0) {
        handle->lost_daemon = false;
        handle->next_daemon = (struct shuf__wait){0};
    }
    return true;
}

static void leave_handle(shuf *handle)
{
    if (--handle->depth == 0)
        atomic_store_explicit(&handle->user, NULL, memory_order_release);
}

static bool enter(shuf *handle)
{
    if (enter_handle(handle)) {
        if (own.refused == handle)
            own.refused = NULL;
        return true;
    }
    own.refused = handle;
    shuf__fail(&own.error, SHUF_INVALID,
               "handle: in use by another thread; expected a handle for each thread");
    return false;
}

static shuf_status check_call(shuf *handle, const struct shuf__argument *arguments)
{
    struct shuf__error *error = shuf__error_of(handle);
    *error = (struct shuf__error){0};
    if (handle && handle->in_callback)
        return shuf__fail(error, SHUF_INVALID,
                          "handle: in use by the call that called this sink, observer or visitor; "
                          "expected another handle, or the end of that call");
    return check_pointers(arguments, error);
}

shuf *shuf__begin_call(shuf *handle, const struct shuf__argument *arguments)
{
    if (handle && !enter(handle))
        return NULL;
    if (check_call(handle, arguments) == SHUF_OK)
        return handle;
    if (handle)
        leave_handle(handle);
    return NULL;
}

/* Call it only at the end of a call. A reply can ask to unmap idle blocks, and at the same time
 * lease a block that is still among them. The call then uses this block. */
static void unmap_idle(shuf *handle)
{
    const struct shuf__error kept = handle->error;
    handle->connection.unmap = false;
    if (shuf__handle_is_ours(handle))
        shuf__release_idle_mappings(handle);
    handle->error = kept;
}

void shuf__end_call(shuf *const *call)
{
    shuf *handle = *call;
    if (!handle)
        return;
    if (handle->connection.unmap && handle->depth == 1)
        unmap_idle(handle);
    leave_handle(handle);
}

/* ---- Positions ---- */

shuf_status shuf__check_range(uint64_t length, uint64_t first, uint64_t count, uint64_t stride,
                              struct shuf__error *error)
{
    if (stride == 0)
        return shuf__fail(error, SHUF_INVALID, "stride 0: expected at least 1");
    if (count == 0)
        return SHUF_OK;
    if (first >= length)
        return shuf__fail(error, SHUF_INVALID,
                          "first %" PRIu64 ": expected less than the length, %" PRIu64, first,
                          length);
    const uint64_t most = (length - 1 - first) / stride + 1;
    if (count > most)
        return shuf__fail(error, SHUF_INVALID,
                          "count %" PRIu64 ": expected at most %" PRIu64 " from position %" PRIu64
                          " on with stride %" PRIu64 ", because the length is %" PRIu64,
                          count, most, first, stride, length);
    return SHUF_OK;
}

/* ---- Look-ups ---- */

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
