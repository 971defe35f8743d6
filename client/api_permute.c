/* SPDX-License-Identifier: MIT
 *
 * The public calls that copy or compute a permutation.
 */
#include "arguments.h"
#include "fetch.h"

shuf_status shuf_permute(shuf *handle, const shuf_permutation *permutation, void *out, size_t bytes,
                         shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(permutation));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.permutation = permutation};
    return shuf__fetch(handle, &options, out, bytes, result);
}

shuf_status shuf_permute_each(shuf *handle, const shuf_permutation *permutation, shuf_sink sink,
                              void *context, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(permutation));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.permutation = permutation};
    return shuf__fetch_each(handle, &options, sink, context, result);
}

shuf_status shuf_summarize(shuf *handle, const shuf_permutation *permutation, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(permutation), SHUF__POINTER(result));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.permutation = permutation};
    return shuf__fetch_summary(handle, &options, result);
}
