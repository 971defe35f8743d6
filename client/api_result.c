/* SPDX-License-Identifier: MIT
 *
 * The public calls for results of any kind: shape, copy, sink, summary, lease and prefetch.
 */
#include "arguments.h"
#include "fetch.h"
#include "held_lease.h"

#include <stdio.h>

/* Checks the pointers first, then the request. */
shuf_status shuf_shape_of(const shuf_request *request, shuf_shape *shape, char *message,
                          size_t size)
{
    const struct shuf__argument pointers[] = {
        SHUF__POINTER(request), SHUF__POINTER(shape), {NULL, false}};
    struct shuf__request_message m;
    struct shuf__error *error = shuf__error_of(NULL);
    *error = (struct shuf__error){0};
    if (shuf__check_pointers(pointers, error) == SHUF_OK &&
        shuf__request_message_make(&m, request, error) == SHUF_OK)
        *shape = m.shape;
    if (message && size > 0)
        snprintf(message, size, "%s", error->text);
    return error->status;
}

shuf_status shuf_copy(shuf *handle, const shuf_request *request, void *out, size_t bytes,
                      shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request));
    return call ? shuf__fetch(handle, request, out, bytes, result) : SHUF_INVALID;
}

shuf_status shuf_each(shuf *handle, const shuf_request *request, shuf_sink sink, void *context,
                      shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request));
    return call ? shuf__fetch_each(handle, request, sink, context, result) : SHUF_INVALID;
}

shuf_status shuf_summarize(shuf *handle, const shuf_request *request, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request), SHUF__POINTER(result));
    return call ? shuf__fetch_summary(handle, request, result) : SHUF_INVALID;
}

shuf_status shuf_lease_take(shuf *handle, const shuf_request *request,
                            const shuf_lease_options *options, shuf_lease **lease)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request), SHUF__POINTER(lease));
    return call ? shuf__take_lease(handle, request, options, lease) : SHUF_INVALID;
}

shuf_status shuf_prefetch(shuf *handle, const shuf_request *request,
                          const shuf_lease_options *options)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request));
    return call ? shuf__prefetch(handle, request, options) : SHUF_INVALID;
}
