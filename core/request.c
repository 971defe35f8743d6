/* SPDX-License-Identifier: MIT
 *
 * See request.h.
 */
#include "request.h"

#include <inttypes.h>
#include <string.h>

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

const struct shuf__permutation *shuf__request_permutation(const struct shuf__request *request)
{
    switch (request->kind) {
    case SHUF__PERMUTATION:
        return &request->permutation;
    case SHUF__SHUFFLE:
        return &request->shuffle.permutation;
    case SHUF__LOOK_UP:
        return &request->look_up.permutation;
    case SHUF__EXCHANGE:
        return &request->plan.permutation;
    default:
        return NULL;
    }
}

enum shuf__distribution shuf__request_distribution(const struct shuf__request *request)
{
    return request->kind == SHUF__STREAM ? request->stream.distribution : SHUF_DISTRIBUTION_NONE;
}

static struct shuf__shape shape_of(uint64_t rows, uint64_t count, uint64_t width)
{
    return (struct shuf__shape){rows, count, width, rows * count * width};
}

struct shuf__shape shuf__request_shape(const struct shuf__request *request)
{
    const unsigned width = shuf__dtype_bytes((int)request->dtype);
    switch (request->kind) {
    case SHUF__PERMUTATION:
        return shape_of(request->permutation.rows, request->permutation.count, width);
    case SHUF__STREAM:
        return shape_of(1, request->stream.count, width);
    case SHUF__SHUFFLE:
        return shape_of(1, request->shuffle.permutation.n, request->shuffle.record);
    case SHUF__BUFFER:
        return shape_of(1, request->buffer.bytes, 1);
    case SHUF__EXCHANGE:
        return shape_of(1, request->plan.numbers, width);
    default:
        return shape_of(0, 0, 0);
    }
}

const char *shuf__request_name(const struct shuf__request *request)
{
    static const char *const names[] = {[SHUF__PERMUTATION] = "permute",
                                        [SHUF__SHUFFLE] = "shuffle",
                                        [SHUF__LOOK_UP] = "index",
                                        [SHUF__BUFFER] = "buffer",
                                        [SHUF__EXCHANGE] = "exchange"};
    return request->kind == SHUF__STREAM ? shuf__distribution_name(request->stream.distribution)
                                         : names[request->kind];
}

/* ---- Order ----------------------------------------------------------------------- */

#define RETURN_UNLESS_EQUAL(a, b)      \
    do {                               \
        if ((a) != (b))                \
            return (a) < (b) ? -1 : 1; \
    } while (0)

static int compare_permutations(const struct shuf__permutation *a,
                                const struct shuf__permutation *b)
{
    RETURN_UNLESS_EQUAL(a->n, b->n);
    RETURN_UNLESS_EQUAL(a->seed, b->seed);
    RETURN_UNLESS_EQUAL(a->seed_high, b->seed_high);
    RETURN_UNLESS_EQUAL(a->epoch, b->epoch);
    RETURN_UNLESS_EQUAL(a->rows, b->rows);
    RETURN_UNLESS_EQUAL(a->offset, b->offset);
    RETURN_UNLESS_EQUAL(a->count, b->count);
    RETURN_UNLESS_EQUAL(a->stride, b->stride);
    RETURN_UNLESS_EQUAL(a->algorithm, b->algorithm);
    return 0;
}

static int compare_streams(const struct shuf__stream *a, const struct shuf__stream *b)
{
    RETURN_UNLESS_EQUAL(a->seed, b->seed);
    RETURN_UNLESS_EQUAL(a->seed_high, b->seed_high);
    RETURN_UNLESS_EQUAL(a->stream, b->stream);
    RETURN_UNLESS_EQUAL(a->offset, b->offset);
    RETURN_UNLESS_EQUAL(a->count, b->count);
    RETURN_UNLESS_EQUAL(a->mean, b->mean);
    RETURN_UNLESS_EQUAL(a->std, b->std);
    RETURN_UNLESS_EQUAL(a->distribution, b->distribution);
    return 0;
}

static int compare_shuffles(const struct shuf__shuffle *a, const struct shuf__shuffle *b)
{
    RETURN_UNLESS_EQUAL(a->record, b->record);
    RETURN_UNLESS_EQUAL(a->inverse, b->inverse);
    return compare_permutations(&a->permutation, &b->permutation);
}

static int compare_look_ups(const struct shuf__look_up *a, const struct shuf__look_up *b)
{
    RETURN_UNLESS_EQUAL(a->inverse, b->inverse);
    return compare_permutations(&a->permutation, &b->permutation);
}

static int compare_plans(const struct shuf__plan *a, const struct shuf__plan *b)
{
    RETURN_UNLESS_EQUAL(a->rank, b->rank);
    RETURN_UNLESS_EQUAL(a->world, b->world);
    RETURN_UNLESS_EQUAL(a->inverse, b->inverse);
    RETURN_UNLESS_EQUAL(a->part, b->part);
    RETURN_UNLESS_EQUAL(a->digest[0], b->digest[0]);
    RETURN_UNLESS_EQUAL(a->digest[1], b->digest[1]);
    return compare_permutations(&a->permutation, &b->permutation);
}

int shuf__request_compare(const struct shuf__request *a, const struct shuf__request *b)
{
    const int names = strcmp(a->key.name, b->key.name);
    RETURN_UNLESS_EQUAL(a->kind, b->kind);
    RETURN_UNLESS_EQUAL(names, 0);
    RETURN_UNLESS_EQUAL(a->key.generation, b->key.generation);
    if (a->kind != SHUF__PERMUTATION)
        RETURN_UNLESS_EQUAL(a->dtype, b->dtype);
    switch (a->kind) {
    case SHUF__PERMUTATION: /* U64 and I64 values of it have the same bits, so only sizes count */
        RETURN_UNLESS_EQUAL(shuf__dtype_bytes((int)a->dtype), shuf__dtype_bytes((int)b->dtype));
        return compare_permutations(&a->permutation, &b->permutation);
    case SHUF__STREAM:
        return compare_streams(&a->stream, &b->stream);
    case SHUF__SHUFFLE:
        return compare_shuffles(&a->shuffle, &b->shuffle);
    case SHUF__LOOK_UP:
        return compare_look_ups(&a->look_up, &b->look_up);
    case SHUF__EXCHANGE:
        return compare_plans(&a->plan, &b->plan);
    default:
        RETURN_UNLESS_EQUAL(a->buffer.bytes, b->buffer.bytes);
        return 0;
    }
}
