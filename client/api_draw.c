/* SPDX-License-Identifier: MIT
 *
 * The public calls for random numbers.
 */
#include "arguments.h"
#include "fetch.h"
#include "held_lease.h"

shuf_status shuf_draw(shuf *handle, const shuf_numbers *numbers, void *out, size_t bytes,
                      shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(numbers));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.numbers = numbers};
    return shuf__fetch(handle, &options, out, bytes, result);
}

shuf_status shuf_draw_each(shuf *handle, const shuf_numbers *numbers, shuf_sink sink, void *context,
                           shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(numbers));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.numbers = numbers};
    return shuf__fetch_each(handle, &options, sink, context, result);
}

shuf_status shuf_draw_summary(shuf *handle, const shuf_numbers *numbers, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(numbers), SHUF__POINTER(result));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.numbers = numbers};
    return shuf__fetch_summary(handle, &options, result);
}

shuf_status shuf_draw_lease(shuf *handle, const shuf_numbers *numbers,
                            const shuf_lease_options *lease_options, shuf_lease **lease)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(numbers), SHUF__POINTER(lease));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.numbers = numbers};
    return shuf__take_lease(handle, &options, lease_options, lease);
}

shuf_status shuf_draw_prefetch(shuf *handle, const shuf_numbers *numbers,
                               const shuf_lease_options *lease_options)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(numbers));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.numbers = numbers};
    return shuf__prefetch(handle, &options, lease_options);
}
