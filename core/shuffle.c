/* SPDX-License-Identifier: MIT
 *
 * SHUFFLE: records moved by a permutation.
 */
#include "kind.h"

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

/* ---- The kind ---------------------------------------------------------------------- */

static struct shuf__shape shape(const struct shuf__request *request)
{
    return shuf__shape_of(1, request->shuffle.permutation.n, request->shuffle.record);
}

static int compare_shuffles(const struct shuf__shuffle *a, const struct shuf__shuffle *b)
{
    SHUF__RETURN_UNLESS_EQUAL(a->record, b->record);
    SHUF__RETURN_UNLESS_EQUAL(a->inverse, b->inverse);
    return shuf__permutation_compare(&a->permutation, &b->permutation);
}

static int compare(const struct shuf__request *a, const struct shuf__request *b)
{
    return compare_shuffles(&a->shuffle, &b->shuffle);
}

static void describe(const struct shuf__request *request, bool all, char *text)
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
    .shape = shape,
    .compare = compare,
    .describe = describe,
};
