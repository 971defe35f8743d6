/* SPDX-License-Identifier: MIT
 *
 * The functions of request.h that all kinds have, and the table of the kinds.
 */
#include "kind.h"

static const struct shuf__kind *kind_of(const struct shuf__request *request)
{
    static const struct shuf__kind *const kinds[] = {
        [SHUF__PERMUTATION] = &shuf__permutation_kind, [SHUF__STREAM] = &shuf__stream_kind,
        [SHUF__SHUFFLE] = &shuf__shuffle_kind,         [SHUF__LOOK_UP] = &shuf__look_up_kind,
        [SHUF__BUFFER] = &shuf__buffer_kind,           [SHUF__EXCHANGE] = &shuf__exchange_kind,
    };
    return kinds[request->kind];
}

_Static_assert(offsetof(struct shuf__shuffle, permutation) == 0 &&
                   offsetof(struct shuf__look_up, permutation) == 0 &&
                   offsetof(struct shuf__plan, permutation) == 0,
               "the permutation of a request is its first member");

const struct shuf__permutation *shuf__request_permutation(const struct shuf__request *request)
{
    return kind_of(request)->has_permutation ? &request->permutation : NULL;
}

enum shuf__distribution shuf__request_distribution(const struct shuf__request *request)
{
    return request->kind == SHUF__STREAM ? request->stream.distribution : SHUF_DISTRIBUTION_NONE;
}

struct shuf__shape shuf__request_shape(const struct shuf__request *request)
{
    const struct shuf__kind *kind = kind_of(request);
    return kind->shape ? kind->shape(request) : (struct shuf__shape){0};
}

const char *shuf__request_name(const struct shuf__request *request)
{
    return request->kind == SHUF__STREAM ? shuf__distribution_name(request->stream.distribution)
                                         : kind_of(request)->name;
}

int shuf__request_compare(const struct shuf__request *a, const struct shuf__request *b)
{
    const int names = strcmp(a->key.name, b->key.name);
    SHUF__RETURN_UNLESS_EQUAL(a->kind, b->kind);
    SHUF__RETURN_UNLESS_EQUAL(names, 0);
    SHUF__RETURN_UNLESS_EQUAL(a->key.check, b->key.check);
    if (a->kind != SHUF__PERMUTATION)
        SHUF__RETURN_UNLESS_EQUAL(a->dtype, b->dtype);
    return kind_of(a)->compare(a, b);
}

const char *shuf__request_describe(const struct shuf__request *request, bool all,
                                   char text[SHUF__REQUEST_TEXT])
{
    kind_of(request)->describe(request, all, text);
    return text;
}
