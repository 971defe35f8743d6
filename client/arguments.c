/* SPDX-License-Identifier: MIT
 *
 * See arguments.h.
 */
#include "arguments.h"

#include "handle.h"
#include "release_message.h"

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

shuf_status shuf__check_pointers(const struct shuf__argument *arguments, struct shuf__error *error)
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
    shuf__check_pointers(arguments, error);
    return error;
}

static bool enter(shuf *handle)
{
    if (shuf__handle_enter(handle, &own)) {
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
    return shuf__check_pointers(arguments, error);
}

shuf *shuf__begin_call(shuf *handle, const struct shuf__argument *arguments)
{
    if (handle && !enter(handle))
        return NULL;
    if (check_call(handle, arguments) == SHUF_OK)
        return handle;
    if (handle)
        shuf__handle_leave(handle);
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
    shuf__handle_leave(handle);
}
