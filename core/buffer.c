/* SPDX-License-Identifier: MIT
 *
 * BUFFER: memory that the client fills. SHUFFLE: its records, moved by a permutation.
 */
#include "kind.h"

/* ---- BUFFER ---- */

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

/* ---- The kind BUFFER ---- */

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

/* ---- SHUFFLE ---- */

shuf_status shuf__shuffle_make(struct shuf__request *request, struct shuf__error *error)
{
    struct shuf__shuffle *shuffle = &request->shuffle;
    const uint64_t n = shuffle->permutation.n;
    uint64_t bytes;
    request->kind = SHUF__SHUFFLE;
    request->dtype = SHUF_AUTO;
    if (shuf__check_n(n, error) || shuf__refuse_windows(&shuffle->permutation, "a shuffle", error))
        return error->status;
    if (shuffle->record == 0)
        return shuf__fail(error, SHUF_INVALID, "record 0: expected at least 1 byte");
    if (__builtin_mul_overflow(n, shuffle->record, &bytes) || bytes > INT64_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "n %" PRIu64 ", record %" PRIu64
                          ": so many bytes pass 2^63, expected fewer",
                          n, shuffle->record);
    shuf__permutation_take_row(&shuffle->permutation);
    return SHUF_OK;
}

shuf_status shuf__shuffle_check_input(const struct shuf__request *request, uint64_t lease,
                                      uint64_t has, struct shuf__error *error)
{
    const struct shuf__shuffle *shuffle = &request->shuffle;
    const uint64_t n = shuffle->permutation.n, bytes = n * shuffle->record;
    if (bytes <= has)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "n %" PRIu64 ", record %" PRIu64 ": %" PRIu64
                      " bytes, expected at most the %" PRIu64 " of lease %" PRIu64,
                      n, shuffle->record, bytes, has, lease);
}

/* ---- The kind SHUFFLE ---- */

static struct shuf__shape shape_of_shuffle(const struct shuf__request *request)
{
    return shuf__shape_of(1, request->shuffle.permutation.n, request->shuffle.record);
}

static int compare_shuffles(const struct shuf__request *a, const struct shuf__request *b)
{
    const struct shuf__shuffle *s = &a->shuffle, *t = &b->shuffle;
    SHUF__RETURN_UNLESS_EQUAL(s->record, t->record);
    SHUF__RETURN_UNLESS_EQUAL(s->inverse, t->inverse);
    return shuf__permutation_compare(&s->permutation, &t->permutation);
}

static void describe_shuffle(const struct shuf__request *request, bool all, char *text)
{
    const struct shuf__shuffle *s = &request->shuffle;
    snprintf(text, SHUF__REQUEST_TEXT, "%s n %" PRIu64 ", records of %" PRIu64 " byte%s",
             s->inverse ? "inverse shuffle" : "shuffle", s->permutation.n, s->record,
             shuf__plural(s->record));
    if (all)
        shuf__add_permutation(request, text);
}

const struct shuf__kind shuf__shuffle_kind = {
    .name = "shuffle",
    .has_permutation = true,
    .shape = shape_of_shuffle,
    .compare = compare_shuffles,
    .describe = describe_shuffle,
};
