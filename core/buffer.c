/* SPDX-License-Identifier: MIT
 *
 * BUFFER: memory that the client fills.
 */
#include "kind.h"

shuf_status shuf__buffer_make(struct shuf__request *request, uint64_t bytes,
                              struct shuf__error *error)
{
    *request = (struct shuf__request){.kind = SHUF__BUFFER, .buffer = {bytes}};
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
                      "offset %" PRIu64 ", %" PRIu64 " byte%s: expected to end within the %" PRIu64
                      " byte%s of lease %" PRIu64,
                      offset, bytes, shuf__plural(bytes), has, shuf__plural(has), lease);
}

/* ---- The kind ---------------------------------------------------------------------- */

static struct shuf__shape shape(const struct shuf__request *request)
{
    return shuf__shape_of(1, request->buffer.bytes, 1);
}

static int compare(const struct shuf__request *a, const struct shuf__request *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->buffer.bytes, b->buffer.bytes);
    return 0;
}

static void describe(const struct shuf__request *request, bool all, char *text)
{
    (void)all;
    snprintf(text, SHUF__REQUEST_TEXT, "buffer of %" PRIu64, request->buffer.bytes);
}

const struct shuf__kind shuf__buffer_kind = {
    .name = "buffer",
    .has_permutation = false,
    .shape = shape,
    .compare = compare,
    .describe = describe,
};
