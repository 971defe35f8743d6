/* SPDX-License-Identifier: MIT
 *
 * See shuffle.h.
 */
#include "shuffle.h"

#include "plan.h"

#include <inttypes.h>

shuf_status shuf__shuffle_check(const Shuf__Shuffle *request, uint64_t *bytes,
                                struct shuf__error *error)
{
    if (request->n == 0 || request->n > SHUF__N_MAX)
        return shuf__fail(error, SHUF_INVALID, "n %" PRIu64 ": expected 1 to 2^62 (%" PRIu64 ")",
                          request->n, SHUF__N_MAX);
    if (request->record == 0 || request->record > SHUF_RECORD_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "record %" PRIu64 ": expected 1 to %" PRIu64 " bytes", request->record,
                          SHUF_RECORD_MAX);
    if (__builtin_mul_overflow(request->n, request->record, bytes) || *bytes > INT64_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "n %" PRIu64 ", record %" PRIu64
                          ": so many bytes pass 2^63, expected fewer",
                          request->n, request->record);
    return SHUF_OK;
}

shuf_status shuf__shuffle_check_input(const Shuf__Shuffle *request, uint64_t bytes, uint64_t has,
                                      struct shuf__error *error)
{
    if (bytes <= has)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "n %" PRIu64 ", record %" PRIu64 ": %" PRIu64
                      " bytes, expected at most the %" PRIu64 " of lease %" PRIu64,
                      request->n, request->record, bytes, has, request->lease);
}

shuf_status shuf__allocate_check(uint64_t bytes, struct shuf__error *error)
{
    if (bytes == 0)
        return shuf__fail(error, SHUF_INVALID, "bytes 0: expected at least 1");
    if (bytes > INT64_MAX)
        return shuf__fail(error, SHUF_NO_MEMORY, "bytes %" PRIu64 ": expected less than 2^63",
                          bytes);
    return SHUF_OK;
}

shuf_status shuf__write_check(uint64_t lease, uint64_t offset, uint64_t bytes, uint64_t has,
                              struct shuf__error *error)
{
    if (offset <= has && bytes <= has - offset)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "offset %" PRIu64 ", %" PRIu64 " bytes: expected to end within the %" PRIu64
                      " bytes of lease %" PRIu64,
                      offset, bytes, has, lease);
}
