/* SPDX-License-Identifier: MIT
 *
 * See summary.h.
 */
#include "summary.h"

#include "json.h"
#include "units.h"

#include <inttypes.h>
#include <stdarg.h>

static uint64_t values_of(const shuf_shape *shape)
{
    return shape->rows * shape->count;
}

__attribute__((format(printf, 3, 4))) static void line(FILE *to, const char *key,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(to, "%-12s", key);
    vfprintf(to, format, args);
    fputc('\n', to);
    va_end(args);
}

static void print_epochs(const struct shuf__summary *s, FILE *to)
{
    const shuf_permutation *what = &s->options->what;
    if (s->options->batch)
        line(to, "epochs", "%" PRIu64 ":%" PRIu64, what->epoch, what->epoch + what->epochs);
    else
        line(to, "epoch", "%" PRIu64, what->epoch);
}

static void print_view(const shuf_permutation *what, FILE *to)
{
    if (what->view == SHUF_VIEW_SLICE)
        line(to, "slice", "offset %" PRIu64 ", count %" PRIu64 ", stride %" PRIu64, what->offset,
             what->count, what->stride);
    else if (what->view == SHUF_VIEW_SHARD)
        line(to, "slice", "rank %" PRIu64 " of %" PRIu64 ", %s", what->rank, what->world,
             what->drop_last ? "last dropped" : "padded");
    else
        line(to, "slice", "all");
}

static void print_edge(FILE *to, const char *key, const uint64_t *values, unsigned count)
{
    fprintf(to, "%-12s", key);
    for (unsigned i = 0; i < count; i++)
        fprintf(to, "%s%" PRIu64, i > 0 ? " " : "", values[i]);
    fputs(count > 0 ? "\n" : "-\n", to);
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_times(const struct shuf__summary *s, FILE *to)
{
    char text[SHUF__UNITS_TEXT];
    const shuf_result *r = s->result;
    line(to, "on device", "%s", shuf__units_time(text, r->device_ns));
    line(to, "seen", "%s", shuf__units_time(text, s->seen_ns));
    line(to, "rate", "%s on device", shuf__units_rate(text, values_of(&r->shape), r->device_ns));
}

static void print_lease(const shuf_lease *lease, FILE *to)
{
    char text[SHUF__UNITS_TEXT];
    bool device = *lease->device_id;
    line(to, "transport", "%s%s%s", shuf_transport_name(lease->transport), device ? ", " : "",
         lease->device_id);
    if (lease->block_bytes > 0)
        line(to, "block", "%" PRIu64 " (%s)", lease->block,
             shuf__units_bytes(text, lease->block_bytes));
    line(to, "cached", "%s", lease->shared ? "yes" : "no");
}

static void print_shape(const struct shuf__summary *s, FILE *to)
{
    char text[SHUF__UNITS_TEXT];
    const shuf_shape *shape = &s->result->shape;
    if (s->options->batch)
        line(to, "shape", "%" PRIu64 " row%s of %" PRIu64 " %s (%s)", shape->rows,
             plural(shape->rows), shape->count, shuf__shape_dtype(shape),
             shuf__units_bytes(text, shape->bytes));
    else
        line(to, "shape", "%" PRIu64 " %s (%s)", shape->count, shuf__shape_dtype(shape),
             shuf__units_bytes(text, shape->bytes));
}

void shuf__summary_print(const struct shuf__summary *s, FILE *to)
{
    const shuf_permutation *what = &s->options->what;
    const shuf_result *r = s->result;
    if (s->options->out)
        line(to, "written", "%s (%s)", s->options->out, shuf__format_name(s->options->format));
    line(to, "backend", "%s, %s", r->backend, r->device);
    line(to, "algorithm", "%s", r->algorithm);
    line(to, "n", "%" PRIu64, what->n);
    line(to, "seed", "%" PRIu64, what->seed);
    print_epochs(s, to);
    print_view(what, to);
    print_shape(s, to);
    print_times(s, to);
    if (s->lease)
        print_lease(s->lease, to);
    print_edge(to, "first", r->head, r->heads);
    print_edge(to, "last", r->tail, r->tails);
    line(to, "fingerprint", "0x%016" PRIx64, r->fingerprint);
}

static void add_view(json_t *object, const shuf_permutation *what)
{
    json_t *view = json_object();
    bool all = what->view == SHUF_VIEW_ALL;
    json_object_set_new(view, "all", json_boolean(all));
    if (what->view == SHUF_VIEW_SHARD) {
        shuf__json_integer(view, "rank", what->rank);
        shuf__json_integer(view, "world", what->world);
        json_object_set_new(view, "drop_last", json_boolean(what->drop_last));
    } else {
        shuf__json_integer(view, "offset", what->offset);
        shuf__json_integer(view, "count", all ? what->n : what->count);
        shuf__json_integer(view, "stride", all ? 1 : what->stride);
    }
    json_object_set_new(object, "slice", view);
}

static void add_edge(json_t *object, const char *key, const uint64_t *values, unsigned count)
{
    json_t *edge = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(edge, json_integer((json_int_t)values[i]));
    json_object_set_new(object, key, edge);
}

/* A batch gives both of its ends, as --epochs takes them. */
static void add_epochs(json_t *object, const struct shuf__summary *s)
{
    const shuf_permutation *what = &s->options->what;
    if (!s->options->batch) {
        shuf__json_decimal(object, "epoch", what->epoch);
        return;
    }
    json_t *epochs = json_array();
    json_array_append_new(epochs, shuf__json_decimal_string(what->epoch));
    json_array_append_new(epochs, shuf__json_decimal_string(what->epoch + what->epochs));
    json_object_set_new(object, "epochs", epochs);
}

static void add_request(json_t *object, const struct shuf__summary *s)
{
    const shuf_permutation *what = &s->options->what;
    shuf__json_text(object, "backend", s->result->backend);
    shuf__json_text(object, "device", s->result->device);
    shuf__json_text(object, "algorithm", s->result->algorithm);
    shuf__json_integer(object, "n", what->n);
    shuf__json_decimal(object, "seed", what->seed);
    add_epochs(object, s);
    add_view(object, what);
}

static void add_lease(json_t *object, const shuf_lease *lease)
{
    shuf__json_text(object, "transport", shuf_transport_name(lease->transport));
    shuf__json_text(object, "device_id", lease->device_id);
    shuf__json_integer(object, "block", lease->block);
    shuf__json_integer(object, "block_bytes", lease->block_bytes);
    json_object_set_new(object, "cached", json_boolean(lease->shared));
}

static void add_shape(json_t *object, const shuf_shape *shape)
{
    shuf__json_text(object, "dtype", shuf__shape_dtype(shape));
    shuf__json_integer(object, "rows", shape->rows);
    shuf__json_integer(object, "count", shape->count);
    shuf__json_integer(object, "bytes", shape->bytes);
}

static void add_result(json_t *object, const struct shuf__summary *s)
{
    uint64_t values = values_of(&s->result->shape), ns = s->result->device_ns;
    add_shape(object, &s->result->shape);
    shuf__json_seconds(object, "device_seconds", ns);
    shuf__json_seconds(object, "seen_seconds", s->seen_ns);
    json_object_set_new(object, "values_per_second",
                        ns > 0 ? json_real((double)values * 1e9 / (double)ns) : json_null());
    add_edge(object, "first", s->result->head, s->result->heads);
    add_edge(object, "last", s->result->tail, s->result->tails);
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
    shuf__json_print(object, to);
}

void shuf__ready_print(const struct shuf__summary *s, FILE *to)
{
    char time[SHUF__UNITS_TEXT], bytes[SHUF__UNITS_TEXT];
    const shuf_result *r = s->result;
    fprintf(to, "ready in shufd: %s, n %" PRIu64 ", seed %" PRIu64 ", epoch", r->algorithm,
            s->options->what.n, s->options->what.seed);
    if (s->options->batch)
        fprintf(to, "s %" PRIu64 ":%" PRIu64, s->options->what.epoch,
                s->options->what.epoch + s->options->what.epochs);
    else
        fprintf(to, " %" PRIu64, s->options->what.epoch);
    fprintf(to, ": %s, computed in %s\n", shuf__units_bytes(bytes, r->shape.bytes),
            shuf__units_time(time, r->device_ns));
}

void shuf__ready_json(const struct shuf__summary *s, FILE *to)
{
    json_t *object = json_object();
    json_object_set_new(object, "ready", json_true());
    add_request(object, s);
    add_shape(object, &s->result->shape);
    shuf__json_seconds(object, "device_seconds", s->result->device_ns);
    shuf__json_seconds(object, "seen_seconds", s->seen_ns);
    shuf__json_print(object, to);
}
