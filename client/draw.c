/* SPDX-License-Identifier: MIT
 *
 * The public calls for numbers.
 */
#include "fetch.h"
#include "lease.h"
shuf_status shuf_draw(shuf *handle, const shuf_numbers *what, void *out, size_t bytes,
                      shuf_result *result)
{
    return shuf__fetch(handle, (struct shuf__wanted){.numbers = what}, out, bytes, result);
}

shuf_status shuf_draw_stream(shuf *handle, const shuf_numbers *what, shuf_sink sink, void *context,
                             shuf_result *result)
{
    return shuf__fetch_stream(handle, (struct shuf__wanted){.numbers = what}, sink, context,
                              result);
}

shuf_status shuf_draw_summary(shuf *handle, const shuf_numbers *what, shuf_result *result)
{
    return shuf__fetch_summary(handle, (struct shuf__wanted){.numbers = what}, result);
}

shuf_status shuf_draw_lease(shuf *handle, const shuf_numbers *what,
                            const shuf_lease_options *options, shuf_lease **lease)
{
    return shuf__lease_take(handle, (struct shuf__wanted){.numbers = what}, options, lease);
}

shuf_status shuf_draw_prefetch(shuf *handle, const shuf_numbers *what,
                               const shuf_lease_options *options)
{
    return shuf__prefetch(handle, (struct shuf__wanted){.numbers = what}, options);
}
