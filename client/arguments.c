/* SPDX-License-Identifier: MIT
 *
 * See arguments.h.
 */
#include "arguments.h"

#include "handle.h"

struct shuf__error *shuf__error_of(shuf *handle)
{
    static _Thread_local struct shuf__error without_handle;
    return handle ? &handle->error : &without_handle;
}

shuf_status shuf__check_pointers(const struct shuf__argument *arguments, struct shuf__error *error)
{
    for (; arguments->name; arguments++)
        if (arguments->is_null)
            return shuf__fail(error, SHUF_INVALID, "%s NULL: expected the address of one",
                              arguments->name);
    return SHUF_OK;
}

shuf_status shuf__begin_call(shuf *handle, const struct shuf__argument *arguments)
{
    struct shuf__error *error = shuf__error_of(handle);
    *error = (struct shuf__error){0};
    if (handle && handle->in_callback)
        return shuf__fail(error, SHUF_INVALID,
                          "handle: in use by the call that called this sink, observer or visitor; "
                          "expected another handle, or the end of that call");
    return shuf__check_pointers(arguments, error);
}
