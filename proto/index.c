/* SPDX-License-Identifier: MIT
 *
 * See index.h.
 */
#include "index.h"

#include "plan.h"

#include <inttypes.h>

_Static_assert(SHUF__INDEX_MAX * sizeof(uint64_t) + 1280 <= SHUF__FRAME_MAX,
               "a frame holds them beside the other fields");

shuf_status shuf__index_check(uint64_t n, const uint64_t *at, size_t count,
                              struct shuf__error *error)
{
    if (n == 0 || n > SHUF__N_MAX)
        return shuf__fail(error, SHUF_INVALID, "n %" PRIu64 ": expected 1 to 2^62 (%" PRIu64 ")", n,
                          SHUF__N_MAX);
    for (size_t i = 0; i < count; i++)
        if (at[i] >= n)
            return shuf__fail(error, SHUF_INVALID,
                              "at[%zu] %" PRIu64 ": expected less than n = %" PRIu64, i, at[i], n);
    return SHUF_OK;
}

shuf_status shuf__index_check_request(const Shuf__Index *request, struct shuf__error *error)
{
    if (request->n_at > SHUF__INDEX_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "at: %zu positions, expected at most %d in one request", request->n_at,
                          SHUF__INDEX_MAX);
    return shuf__index_check(request->n, request->at, request->n_at, error);
}
