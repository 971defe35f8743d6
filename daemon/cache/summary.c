/* SPDX-License-Identifier: MIT
 *
 * See summary.h.
 */
#include "summary.h"

#include <math.h>
#include <string.h>

bool shuf__summary_has_fingerprint(const struct shuf__summary *summary,
                                   const struct shuf__compute_options *options)
{
    return !options->fingerprint ||
           (summary->has_fingerprint && summary->fingerprint_index == options->fingerprint_index);
}

bool shuf__summary_has(const struct shuf__cache_entry *entry,
                       const struct shuf__compute_options *options)
{
    const struct shuf__summary *summary = &entry->summary;
    return entry->ready && shuf__summary_has_fingerprint(summary, options) &&
           (!options->sums || summary->has_sums) && (!options->samples || summary->has_samples);
}

/* The mean, and 1 divided by the standard deviation, of uniform integers below `values` that are
 * multiplied by `unit`. A single value has no deviation. */
static struct shuf__measure uniform(double values, double unit)
{
    return (struct shuf__measure){
        .centre = (values - 1) / 2 * unit,
        .scale = values > 1 ? sqrt(12 / (values * values - 1)) / unit : 1,
    };
}

/* The same of words of `bits` bits, each of them 1 with the probability p. */
static struct shuf__measure words_of_bits(int bits, double p)
{
    const double values = ldexp(1, bits), deviation = sqrt(p * (1 - p) * (values * values - 1) / 3);
    return (struct shuf__measure){p * (values - 1), deviation > 0 ? 1 / deviation : 1};
}

struct shuf__measure shuf__measure_of(const struct shuf__request *request)
{
    const struct shuf__stream *s = &request->stream;
    const enum shuf__parameters parameters = shuf__distribution_parameters(s->distribution);
    if (parameters == SHUF__MEAN_AND_STD)
        return (struct shuf__measure){s->mean, 1 / s->std};
    if (parameters == SHUF__BOUND)
        return uniform((double)s->bound, 1);
    if (parameters == SHUF__MEAN)
        return (struct shuf__measure){s->mean, 1 / s->mean};
    if (parameters == SHUF__PROBABILITY)
        return words_of_bits(8 * (int)shuf__dtype_bytes((int)request->dtype), s->mean);
    switch (request->dtype) {
    case SHUF_U32:
        return uniform(0x1p32, 1);
    case SHUF_U64:
        return uniform(0x1p64, 1);
    case SHUF_F32:
        return uniform(0x1p24, 0x1p-24);
    default:
        return uniform(0x1p53, 0x1p-53);
    }
}

static uint64_t values_of(const struct shuf__cache_entry *entry)
{
    const struct shuf__shape shape = shuf__request_shape(&entry->key.request);
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

shuf_status shuf__summary_read(struct shuf__backend *backend, const struct shuf__block *block,
                               shuf_dtype dtype, uint64_t first, size_t count, uint64_t *values,
                               struct shuf__error *error)
{
    uint8_t bytes[SHUF__SAMPLES * sizeof(uint64_t)];
    const unsigned width = shuf__dtype_bytes((int)dtype);
    if (backend->ops->read(backend, block, first * width, count * width, bytes, error))
        return error->status;
    for (size_t i = 0; i < count; i++)
        values[i] = read_value(bytes + i * width, width);
    return SHUF_OK;
}

static shuf_status add_samples(struct shuf__backend *backend, const struct shuf__cache_entry *entry,
                               struct shuf__summary *summary, struct shuf__error *error)
{
    const uint64_t values = values_of(entry);
    const struct shuf__block *block = &entry->allocation->block;
    const shuf_dtype dtype = entry->key.request.dtype;
    summary->n_first = values < SHUF__SAMPLES ? (unsigned)values : SHUF__SAMPLES;
    summary->n_last = values - summary->n_first < SHUF__SAMPLES
                          ? (unsigned)(values - summary->n_first)
                          : SHUF__SAMPLES;
    if (shuf__summary_read(backend, block, dtype, 0, summary->n_first, summary->first, error) ||
        shuf__summary_read(backend, block, dtype, values - summary->n_last, summary->n_last,
                           summary->last, error))
        return error->status;
    summary->has_samples = true;
    return SHUF_OK;
}

static shuf_status add_fingerprint(struct shuf__backend *backend,
                                   const struct shuf__cache_entry *entry, uint64_t index,
                                   struct shuf__summary *summary, struct shuf__error *error)
{
    if (backend->ops->fingerprint(backend, &entry->allocation->block,
                                  shuf__dtype_bytes((int)entry->key.request.dtype),
                                  values_of(entry), index, &summary->fingerprint, error))
        return error->status;
    summary->has_fingerprint = true;
    summary->fingerprint_index = index;
    return SHUF_OK;
}

static shuf_status add_sums(struct shuf__backend *backend, const struct shuf__cache_entry *entry,
                            struct shuf__summary *summary, struct shuf__error *error)
{
    const struct shuf__request *request = &entry->key.request;
    const struct shuf__measure measure = shuf__measure_of(request);
    if (backend->ops->sums(backend, &entry->allocation->block, request->dtype, values_of(entry),
                           measure.centre, measure.scale, &summary->sums, error))
        return error->status;
    summary->has_sums = true;
    return SHUF_OK;
}

shuf_status shuf__summary_complete(struct shuf__backend *backend,
                                   const struct shuf__cache_entry *entry,
                                   const struct shuf__compute_options *options,
                                   struct shuf__summary *summary, struct shuf__error *error)
{
    if ((!shuf__summary_has_fingerprint(summary, options) &&
         add_fingerprint(backend, entry, options->fingerprint_index, summary, error)) ||
        (options->sums && !summary->has_sums && add_sums(backend, entry, summary, error)) ||
        (options->samples && !summary->has_samples && add_samples(backend, entry, summary, error)))
        return error->status;
    return SHUF_OK;
}
