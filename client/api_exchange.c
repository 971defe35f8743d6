/* SPDX-License-Identifier: MIT
 *
 * The public calls for the plans of exchanges.
 */
#include "arguments.h"
#include "fetch.h"
#include "held_lease.h"

shuf_status shuf_exchange(shuf *handle, const shuf_ranks *ranks, void *out, size_t bytes,
                          shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(ranks));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.ranks = ranks};
    return shuf__fetch(handle, &options, out, bytes, result);
}

shuf_status shuf_exchange_lease(shuf *handle, const shuf_ranks *ranks,
                                const shuf_lease_options *lease_options, shuf_lease **lease)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(ranks), SHUF__POINTER(lease));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.ranks = ranks};
    return shuf__take_lease(handle, &options, lease_options, lease);
}

shuf_status shuf_exchange_prefetch(shuf *handle, const shuf_ranks *ranks,
                                   const shuf_lease_options *lease_options)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(ranks));
    if (!call)
        return SHUF_INVALID;
    const struct shuf__request_options options = {.ranks = ranks};
    return shuf__prefetch(handle, &options, lease_options);
}
