/* SPDX-License-Identifier: MIT
 *
 * See summary.h.
 */
#include "summary.h"

#include <math.h>
#include <string.h>

bool shuf__described(const struct shuf__cache_entry *result,
                     const struct shuf__compute_options *want)
{
    const struct shuf__summary *summary = &result->summary;
    return result->ready && (!want->fingerprint || summary->has_fingerprint) &&
           (!want->sums || summary->has_sums) && (!want->edges || summary->has_edges);
}

/* Of the whole numbers below 2^bits, each as likely, times `unit`. */
static struct shuf__measure uniform(int bits, double unit)
{
    const double values = ldexp(1, bits);
    return (struct shuf__measure){
        .centre = (values - 1) / 2 * unit,
        .scale = sqrt(12 / (values * values - 1)) / unit,
    };
}

struct shuf__measure shuf__measure_of(const struct shuf__request *request)
{
    const struct shuf__stream *s = &request->stream;
    if (shuf__distribution_is_normal(s->distribution))
        return (struct shuf__measure){s->mean, 1 / s->std};
    switch (request->dtype) {
    case SHUF_U32:
        return uniform(32, 1);
    case SHUF_U64:
        return uniform(64, 1);
    case SHUF_F32:
        return uniform(24, 0x1p-24);
    default:
        return uniform(53, 0x1p-53);
    }
}

static uint64_t values_of(const struct shuf__cache_entry *result)
{
    const struct shuf__shape shape = shuf__request_shape(&result->key.request);
    return shape.rows * shape.count;
}

static uint64_t read_value(const uint8_t *bytes, unsigned width)
{
    uint16_t half;
    uint32_t narrow;
    uint64_t wide;
    switch (width) {
    case sizeof half:
        memcpy(&half, bytes, sizeof half);
        return half;
    case sizeof narrow:
        memcpy(&narrow, bytes, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, bytes, sizeof wide);
        return wide;
    }
}

static shuf_status read_edge(struct shuf__backend *backend, const struct shuf__cache_entry *result,
                             uint64_t first, size_t count, uint64_t *values,
                             struct shuf__error *error)
{
    uint8_t edge[SHUF__EDGE * sizeof(uint64_t)];
    const unsigned width = shuf__dtype_bytes((int)result->key.request.dtype);
    if (backend->ops->read(backend, &result->allocation->block, first * width, count * width, edge,
                           error))
        return error->status;
    for (size_t i = 0; i < count; i++)
        values[i] = read_value(edge + i * width, width);
    return SHUF_OK;
}

static shuf_status read_edges(struct shuf__backend *backend, const struct shuf__cache_entry *result,
                              struct shuf__summary *to, struct shuf__error *error)
{
    uint64_t values = values_of(result);
    to->heads = values < SHUF__EDGE ? (unsigned)values : SHUF__EDGE;
    to->tails = values - to->heads < SHUF__EDGE ? (unsigned)(values - to->heads) : SHUF__EDGE;
    if (read_edge(backend, result, 0, to->heads, to->head, error) ||
        read_edge(backend, result, values - to->tails, to->tails, to->tail, error))
        return error->status;
    to->has_edges = true;
    return SHUF_OK;
}

static shuf_status take_fingerprint(struct shuf__backend *backend,
                                    const struct shuf__cache_entry *result,
                                    struct shuf__summary *to, struct shuf__error *error)
{
    if (backend->ops->fingerprint(backend, &result->allocation->block,
                                  shuf__dtype_bytes((int)result->key.request.dtype),
                                  values_of(result), &to->fingerprint, error))
        return error->status;
    to->has_fingerprint = true;
    return SHUF_OK;
}

static shuf_status take_sums(struct shuf__backend *backend, const struct shuf__cache_entry *result,
                             struct shuf__summary *to, struct shuf__error *error)
{
    const struct shuf__request *request = &result->key.request;
    const struct shuf__measure measure = shuf__measure_of(request);
    if (backend->ops->sums(backend, &result->allocation->block, request->dtype, values_of(result),
                           measure.centre, measure.scale, &to->sums, error))
        return error->status;
    to->has_sums = true;
    return SHUF_OK;
}

shuf_status shuf__describe(struct shuf__backend *backend, const struct shuf__cache_entry *result,
                           const struct shuf__compute_options *want, struct shuf__summary *to,
                           struct shuf__error *error)
{
    if ((want->fingerprint && !to->has_fingerprint &&
         take_fingerprint(backend, result, to, error)) ||
        (want->sums && !to->has_sums && take_sums(backend, result, to, error)) ||
        (want->edges && !to->has_edges && read_edges(backend, result, to, error)))
        return error->status;
    return SHUF_OK;
}
