/* SPDX-License-Identifier: MIT
 *
 * The public calls that copy a permutation, or have it only computed.
 */
#include "fetch.h"

shuf_status shuf_permute(shuf *handle, const shuf_permutation *what, void *out, size_t bytes,
                         shuf_result *result)
{
    return shuf__fetch(handle, (struct shuf__wanted){.permutation = what}, out, bytes, result);
}

shuf_status shuf_permute_stream(shuf *handle, const shuf_permutation *what, shuf_sink sink,
                                void *context, shuf_result *result)
{
    return shuf__fetch_stream(handle, (struct shuf__wanted){.permutation = what}, sink, context,
                              result);
}

shuf_status shuf_summarize(shuf *handle, const shuf_permutation *what, shuf_result *result)
{
    return shuf__fetch_summary(handle, (struct shuf__wanted){.permutation = what}, result);
}
