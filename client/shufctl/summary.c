/* SPDX-License-Identifier: MIT
 *
 * See summary.h.
 */
#include "summary.h"

#include "describe_request.h"
#include "format_value.h"
#include "json.h"
#include "order_options.h"
#include "units.h"

#include <inttypes.h>
#include <math.h>

static uint64_t count_values(const shuf_shape *shape)
{
    return shape->rows * shape->count;
}

static void print_samples(FILE *to, const char *key, shuf_dtype dtype, const uint64_t *values,
                          unsigned count)
{
    char text[SHUF__VALUE_TEXT];
    shuf__print_key(to, key);
    for (unsigned i = 0; i < count; i++) {
        shuf__value_text(dtype, values[i], text);
        fprintf(to, "%s%s", i > 0 ? " " : "", text);
    }
    fputs(count > 0 ? "\n" : "-\n", to);
}

static void print_moment(FILE *to, const char *key, double value)
{
    if (isnan(value)) /* all values are equal */
        shuf__print_line(to, key, "-");
    else
        shuf__print_line(to, key, "%.10g", value);
}

static void print_moments(const shuf_moments *m, shuf_dtype dtype, FILE *to)
{
    char text[SHUF__VALUE_TEXT];
    print_moment(to, "mean", m->mean);
    print_moment(to, "variance", m->variance);
    print_moment(to, "skewness", m->skewness);
    print_moment(to, "kurtosis", m->kurtosis);
    shuf__value_text_of(dtype, m->least, text);
    shuf__print_line(to, "least", "%s", text);
    shuf__value_text_of(dtype, m->largest, text);
    shuf__print_line(to, "largest", "%s", text);
}

static bool has_moments(const struct shuf__summary *s)
{
    return shuf__wants_moments(s->options->request);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_times(const struct shuf__summary *s, FILE *to)
{
    char text[SHUF__UNITS_TEXT], rate[SHUF__UNITS_TEXT];
    const shuf_result *r = s->result;
    shuf__print_line(to, "compute", "%s%s, %s", shuf__units_time(text, r->device_ns),
                     r->shared ? " (earlier)" : "",
                     shuf__units_rate(rate, count_values(&r->shape), r->device_ns));
    shuf__print_line(to, "total", "%s", shuf__units_time(text, s->seen_ns));
    shuf__print_line(to, "cached", "%s", r->shared ? "yes" : "no");
}

static void print_lease(const shuf_lease *lease, FILE *to)
{
    char text[SHUF__UNITS_TEXT];
    bool device = *lease->device_id;
    shuf__print_line(to, "transport", "%s%s%s", shuf_transport_name(lease->transport),
                     device ? ", " : "", lease->device_id);
    if (lease->block_bytes > 0)
        shuf__print_line(to, "block", "%" PRIu64 " (%s)", lease->block,
                         shuf__units_memory(text, lease->block_bytes));
}

static void print_shape(const struct shuf__summary *s, FILE *to)
{
    char text[SHUF__UNITS_TEXT];
    const shuf_shape *shape = &s->result->shape;
    if (s->options->batch)
        shuf__print_line(to, "shape", "%" PRIu64 " row%s of %" PRIu64 " %s (%s)", shape->rows,
                         plural(shape->rows), shape->count, shuf__dtype_text(shape->dtype),
                         shuf__units_bytes(text, shape->bytes));
    else
        shuf__print_line(to, "shape", "%" PRIu64 " %s (%s)", shape->count,
                         shuf__dtype_text(shape->dtype), shuf__units_bytes(text, shape->bytes));
}

void shuf__summary_print(const struct shuf__summary *s, FILE *to)
{
    const shuf_result *r = s->result;
    if (s->options->out)
        shuf__print_line(to, "written", "%s (%s)", s->options->out,
                         shuf__format_name(s->options->format));
    shuf__print_line(to, "backend", "%s, %s", r->backend, r->device);
    shuf__describe_request(s->options, r, to);
    print_shape(s, to);
    print_times(s, to);
    if (s->lease)
        print_lease(s->lease, to);
    print_samples(to, "first", r->shape.dtype, r->first, r->n_first);
    print_samples(to, "last", r->shape.dtype, r->last, r->n_last);
    if (has_moments(s))
        print_moments(&r->moments, r->shape.dtype, to);
    shuf__print_line(to, "fingerprint", "0x%016" PRIx64, r->fingerprint);
}

/* Whole numbers of a stream use all 64 bits, so they are strings. */
static json_t *value_to_json(const struct shuf__summary *s, uint64_t bits)
{
    const shuf_dtype dtype = s->result->shape.dtype;
    if (shuf__value_is_fraction(dtype))
        return json_real(shuf__value_of(dtype, bits));
    return s->options->request->kind == SHUF_NUMBERS && dtype == SHUF_U64
               ? shuf__json_decimal_string(bits)
               : json_integer((json_int_t)bits);
}

static void samples_to_json(json_t *object, const char *key, const struct shuf__summary *s,
                            const uint64_t *values, unsigned count)
{
    json_t *samples = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(samples, value_to_json(s, values[i]));
    json_object_set_new(object, key, samples);
}

/* NaN becomes null. */
static void add_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isnan(value) ? json_null() : json_real(value));
}

/* Adds the least or largest value in the same form as first and last, except for u64. */
static void add_extreme(json_t *object, const char *key, shuf_dtype dtype, double value)
{
    if (dtype == SHUF_U32 && value >= 0 && value <= UINT32_MAX)
        json_object_set_new(object, key, json_integer((json_int_t)value));
    else
        add_real(object, key, value);
}

static void moments_to_json(json_t *object, const shuf_moments *m, shuf_dtype dtype)
{
    json_t *moments = json_object();
    add_real(moments, "mean", m->mean);
    add_real(moments, "variance", m->variance);
    add_real(moments, "skewness", m->skewness);
    add_real(moments, "kurtosis", m->kurtosis);
    add_extreme(moments, "least", dtype, m->least);
    add_extreme(moments, "largest", dtype, m->largest);
    json_object_set_new(object, "moments", moments);
}

static void add_request(json_t *object, const struct shuf__summary *s)
{
    shuf__json_text(object, "backend", s->result->backend);
    shuf__json_text(object, "device", s->result->device);
    shuf__describe_request_json(s->options, s->result, object);
}

static void add_lease(json_t *object, const shuf_lease *lease)
{
    shuf__json_text(object, "transport", shuf_transport_name(lease->transport));
    shuf__json_text(object, "device_id", lease->device_id);
    shuf__json_integer(object, "block", lease->block);
    shuf__json_integer(object, "block_bytes", lease->block_bytes);
}

static void add_shape(json_t *object, const shuf_shape *shape)
{
    shuf__json_text(object, "dtype", shuf__dtype_text(shape->dtype));
    shuf__json_integer(object, "rows", shape->rows);
    shuf__json_integer(object, "count", shape->count);
    shuf__json_integer(object, "bytes", shape->bytes);
}

static void add_result(json_t *object, const struct shuf__summary *s)
{
    uint64_t values = count_values(&s->result->shape), ns = s->result->device_ns;
    add_shape(object, &s->result->shape);
    shuf__json_seconds(object, "compute_seconds", ns);
    shuf__json_seconds(object, "total_seconds", s->seen_ns);
    json_object_set_new(object, "cached", json_boolean(s->result->shared));
    json_object_set_new(object, "values_per_second",
                        ns > 0 ? json_real((double)values * 1e9 / (double)ns) : json_null());
    samples_to_json(object, "first", s, s->result->first, s->result->n_first);
    samples_to_json(object, "last", s, s->result->last, s->result->n_last);
    if (has_moments(s))
        moments_to_json(object, &s->result->moments, s->result->shape.dtype);
}

static void print_object(const struct shuf__summary *s, json_t *object, FILE *to)
{
    (s->options->request->kind == SHUF_NUMBERS ? shuf__json_print_exact : shuf__json_print)(object,
                                                                                            to);
}

void shuf__summary_json(const struct shuf__summary *s, FILE *to)
{
    json_t *object = json_object();
    add_request(object, s);
    add_result(object, s);
    shuf__json_hex(object, "fingerprint", s->result->fingerprint);
    if (s->lease)
        add_lease(object, s->lease);
    if (s->options->out) {
        shuf__json_text(object, "out", s->options->out);
        shuf__json_text(object, "format", shuf__format_name(s->options->format));
    }
    print_object(s, object, to);
}

void shuf__ready_print(const struct shuf__summary *s, FILE *to)
{
    char time[SHUF__UNITS_TEXT], bytes[SHUF__UNITS_TEXT];
    const shuf_result *r = s->result;
    fputs("ready in shufd: ", to);
    shuf__describe_request_short(s->options, r, to);
    fprintf(to, ": %s, computed in %s\n", shuf__units_bytes(bytes, r->shape.bytes),
            shuf__units_time(time, r->device_ns));
}

void shuf__ready_json(const struct shuf__summary *s, FILE *to)
{
    json_t *object = json_object();
    json_object_set_new(object, "ready", json_true());
    add_request(object, s);
    add_shape(object, &s->result->shape);
    shuf__json_seconds(object, "compute_seconds", s->result->device_ns);
    shuf__json_seconds(object, "total_seconds", s->seen_ns);
    print_object(s, object, to);
}
