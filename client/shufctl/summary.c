/* SPDX-License-Identifier: MIT
 *
 * See summary.h.
 */
#include "summary.h"

#include "chunk_list.h"
#include "dtype.h"
#include "error.h"
#include "exit.h"
#include "format_value.h"
#include "json.h"
#include "progress.h"
#include "request.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Lines ---- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool has_colours(FILE *to)
{
    const char *terminal = getenv("TERM");
    return isatty(fileno(to)) && !is_set("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
}

/* Prints the key of a line that a person reads, and blanks up to the column of the values. The key
 * is bold on a terminal, unless NO_COLOR is set. */
static void print_key(FILE *to, const char *key)
{
    const bool bold = has_colours(to);
    fprintf(to, "%s%-12s%s", bold ? "\033[1m" : "", key, bold ? "\033[0m" : "");
}

void shuf__print_line(FILE *to, const char *key, const char *format, ...)
{
    va_list args;
    char text[PATH_MAX + 64]; /* a file and its format */
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shuf__make_printable(text);
    print_key(to, key);
    fprintf(to, "%s\n", text);
}

/* ---- Words ---- */

const char *shuf__distribution_text(shuf_distribution distribution)
{
    return shuf__distribution_is_named((int)distribution)
               ? shuf__distribution_name((unsigned)distribution)
               : "-";
}

const char *const shuf__method_names[] = {"table", "box-muller", NULL};

const char *shuf__method_text(shuf_method method)
{
    return (unsigned)method <= SHUF_BOX_MULLER ? shuf__method_names[method] : "-";
}

const char *shuf__dtype_text(shuf_dtype dtype)
{
    const char *name = shuf__dtype_name((int)dtype);
    return name ? name : "-";
}

/* ---- Seeds and windows ---- */

static bool is_key(const char *key)
{
    return key && *key;
}

const char *shuf__seed_text(char text[SHUF__SEED_TEXT], const char *key, uint64_t seed)
{
    if (is_key(key))
        snprintf(text, SHUF__SEED_TEXT, "key %s", key);
    else
        snprintf(text, SHUF__SEED_TEXT, "seed %" PRIu64, seed);
    return text;
}

void shuf__print_seed(FILE *to, const char *key, uint64_t seed)
{
    print_key(to, is_key(key) ? "key" : "seed");
    if (is_key(key))
        fprintf(to, "%s\n", key);
    else
        fprintf(to, "%" PRIu64 "\n", seed);
}

void shuf__json_seed(json_t *object, const char *key, uint64_t seed)
{
    if (is_key(key))
        shuf__json_text(object, "key", key);
    else
        shuf__json_decimal(object, "seed", seed);
}

void shuf__json_windows(json_t *object, const shuf_permutation *permutation)
{
    if (permutation->window == 0)
        return;
    shuf__json_integer(object, "chunk", permutation->chunk);
    shuf__json_integer(object, "window", permutation->window);
}

/* ---- Permutations ---- */

static void print_epochs(const struct shuf__output_options *options, FILE *to)
{
    const shuf_permutation *permutation = &options->request->permutation;
    if (options->batch)
        shuf__print_line(to, "epochs", "%" PRIu64 ":%" PRIu64, permutation->epoch,
                         permutation->epoch + permutation->epochs);
    else
        shuf__print_line(to, "epoch", "%" PRIu64, permutation->epoch);
}

static void print_shard(const shuf_permutation *permutation, uint64_t count, FILE *to)
{
    char part[80] = "";
    if (permutation->step || permutation->count)
        snprintf(part, sizeof part, ", step %" PRIu64 ", count %" PRIu64, permutation->step, count);
    shuf__print_line(to, "slice", "rank %" PRIu64 " of %" PRIu64 ", %s%s", permutation->rank,
                     permutation->world, permutation->drop_last ? "last dropped" : "padded", part);
}

/* The permutation with the view that the user has chosen. */
static shuf_permutation chosen_view(const struct shuf__output_options *options)
{
    shuf_permutation permutation = options->request->permutation;
    if (options->is_empty_rest) {
        permutation.view = SHUF_VIEW_SLICE;
        permutation.offset = permutation.n;
        permutation.stride = 1;
    }
    return permutation;
}

static void print_view(const shuf_permutation *permutation, uint64_t count, FILE *to)
{
    if (permutation->view == SHUF_VIEW_SLICE)
        shuf__print_line(to, "slice", "offset %" PRIu64 ", count %" PRIu64 ", stride %" PRIu64,
                         permutation->offset, permutation->count, permutation->stride);
    else if (permutation->view == SHUF_VIEW_SHARD)
        print_shard(permutation, count, to);
    else
        shuf__print_line(to, "slice", "all");
}

static void print_permutation_request(const struct shuf__output_options *options,
                                      const shuf_result *result, FILE *to)
{
    const shuf_permutation permutation = chosen_view(options);
    shuf__print_line(to, "algorithm", "%s", result->algorithm);
    shuf__print_line(to, "n", "%" PRIu64, permutation.n);
    shuf__print_seed(to, permutation.key, permutation.seed);
    print_epochs(options, to);
    if (permutation.window)
        shuf__print_line(to, "windows", "of %" PRIu64 " chunks of %" PRIu64, permutation.window,
                         permutation.chunk);
    if (options->chunks)
        shuf__print_line(to, "windows", "of %" PRIu64 " chunks, of %zu in all",
                         options->chunks->window, options->chunks->sizes.count);
    print_view(&permutation, result->shape.count, to);
}

static void print_permutation_short(const struct shuf__output_options *options,
                                    const shuf_result *result, FILE *to)
{
    const shuf_permutation *permutation = &options->request->permutation;
    char seed[SHUF__SEED_TEXT];
    fprintf(to, "%s, n %" PRIu64 ", %s, epoch", result->algorithm, permutation->n,
            shuf__seed_text(seed, permutation->key, permutation->seed));
    if (options->batch)
        fprintf(to, "s %" PRIu64 ":%" PRIu64, permutation->epoch,
                permutation->epoch + permutation->epochs);
    else
        fprintf(to, " %" PRIu64, permutation->epoch);
}

static void add_view(json_t *object, const shuf_permutation *permutation, uint64_t count)
{
    json_t *view = json_object();
    bool all = permutation->view == SHUF_VIEW_ALL;
    json_object_set_new(view, "all", json_boolean(all));
    if (permutation->view == SHUF_VIEW_SHARD) {
        shuf__json_integer(view, "rank", permutation->rank);
        shuf__json_integer(view, "world", permutation->world);
        json_object_set_new(view, "drop_last", json_boolean(permutation->drop_last));
        shuf__json_integer(view, "step", permutation->step);
        shuf__json_integer(view, "count", count);
    } else {
        shuf__json_integer(view, "offset", permutation->offset);
        shuf__json_integer(view, "count", count);
        shuf__json_integer(view, "stride", all ? 1 : permutation->stride);
    }
    json_object_set_new(object, "slice", view);
}

/* For a batch, adds both bounds, in the form of --epochs. */
static void add_epochs(json_t *object, const struct shuf__output_options *options)
{
    const shuf_permutation *permutation = &options->request->permutation;
    if (!options->batch) {
        shuf__json_decimal(object, "epoch", permutation->epoch);
        return;
    }
    json_t *epochs = json_array();
    json_array_append_new(epochs, shuf__json_decimal_string(permutation->epoch));
    json_array_append_new(epochs,
                          shuf__json_decimal_string(permutation->epoch + permutation->epochs));
    json_object_set_new(object, "epochs", epochs);
}

static void permutation_to_json(json_t *object, const struct shuf__output_options *options,
                                const shuf_result *result)
{
    const shuf_permutation permutation = chosen_view(options);
    shuf__json_text(object, "algorithm", result->algorithm);
    shuf__json_integer(object, "n", permutation.n);
    shuf__json_seed(object, permutation.key, permutation.seed);
    add_epochs(object, options);
    shuf__json_windows(object, &permutation);
    if (options->chunks)
        shuf__json_chunks(object, options->chunks);
    add_view(object, &permutation, result->shape.count);
}

/* ---- Numbers ---- */

static void print_distribution(const shuf_numbers *numbers, FILE *to)
{
    fputs(shuf__distribution_text(numbers->distribution), to);
    if (numbers->method)
        fprintf(to, ", method %s", shuf__method_text(numbers->method));
    if (shuf__distribution_has_mean(numbers->distribution))
        fprintf(to, ", %s %.15g", numbers->distribution == SHUF_BERNOULLI ? "probability" : "mean",
                numbers->mean);
    if (numbers->distribution == SHUF_GAUSS)
        fprintf(to, ", std %.15g", numbers->std);
    if (numbers->distribution == SHUF_INTEGERS)
        fprintf(to, ", bound %" PRIu64, numbers->bound);
}

static void print_numbers_request(const shuf_numbers *numbers, FILE *to)
{
    print_key(to, "numbers");
    print_distribution(numbers, to);
    fputc('\n', to);
    shuf__print_seed(to, numbers->key, numbers->seed);
    shuf__print_line(to, "stream", "%" PRIu64, numbers->stream);
    shuf__print_line(to, "slice", "offset %" PRIu64 ", count %" PRIu64, numbers->offset,
                     numbers->count);
}

static void print_numbers_short(const shuf_numbers *numbers, FILE *to)
{
    char seed[SHUF__SEED_TEXT];
    print_distribution(numbers, to);
    fprintf(to, ", %s, stream %" PRIu64 ", offset %" PRIu64,
            shuf__seed_text(seed, numbers->key, numbers->seed), numbers->stream, numbers->offset);
}

static void numbers_to_json(json_t *object, const shuf_numbers *numbers)
{
    json_t *slice = json_object();
    shuf__json_text(object, "distribution", shuf__distribution_text(numbers->distribution));
    if (numbers->distribution == SHUF_GAUSS)
        shuf__json_text(object, "method", shuf__method_text(numbers->method));
    if (shuf__distribution_has_mean(numbers->distribution))
        json_object_set_new(object, "mean", json_real(numbers->mean));
    if (numbers->distribution == SHUF_GAUSS)
        json_object_set_new(object, "std", json_real(numbers->std));
    if (numbers->distribution == SHUF_INTEGERS)
        shuf__json_decimal(object, "bound", numbers->bound);
    shuf__json_seed(object, numbers->key, numbers->seed);
    shuf__json_decimal(object, "stream", numbers->stream);
    shuf__json_integer(slice, "offset", numbers->offset);
    shuf__json_integer(slice, "count", numbers->count);
    json_object_set_new(object, "slice", slice);
}

/* ---- Requests ---- */

static void print_request(const struct shuf__output_options *options, const shuf_result *result,
                          FILE *to)
{
    if (options->request->kind == SHUF_NUMBERS)
        print_numbers_request(&options->request->numbers, to);
    else
        print_permutation_request(options, result, to);
}

static void print_request_short(const struct shuf__output_options *options,
                                const shuf_result *result, FILE *to)
{
    if (options->request->kind == SHUF_NUMBERS)
        print_numbers_short(&options->request->numbers, to);
    else
        print_permutation_short(options, result, to);
}

static void request_to_json(const struct shuf__output_options *options, const shuf_result *result,
                            json_t *object)
{
    if (options->request->kind == SHUF_NUMBERS)
        numbers_to_json(object, &options->request->numbers);
    else
        permutation_to_json(object, options, result);
}

/* ---- The head line ---- */

enum {
    BYTES_MOST = 1 << 30, /* bytes of a result; a larger one may be slow: the cache may lack it */
    KEY_COLUMNS = 12,
};

struct head {
    unsigned width; /* bytes of a value */
    size_t bytes;
    uint8_t values[SHUF__COLUMNS_MOST * sizeof(uint64_t)];
};

static bool take_chunk(void *context, const void *bytes, size_t size)
{
    struct head *head = context;
    const size_t room = sizeof head->values - head->bytes;
    const size_t taken = size < room ? size : room;
    memcpy(head->values + head->bytes, bytes, taken);
    head->bytes += taken;
    return head->bytes < sizeof head->values;
}

/* Prints the values that fit a line of `room` columns, and "..." if there are more. */
static void print_values(const struct head *head, const shuf_shape *shape, size_t room)
{
    char line[SHUF__COLUMNS_MOST + 8] = "", text[SHUF__VALUE_TEXT];
    const uint64_t all = shape->rows * shape->count;
    size_t used = 0;
    uint64_t shown = 0;
    for (; shown < head->bytes / head->width; shown++) {
        uint64_t bits = 0; /* little-endian: fewer bytes fill its low end */
        memcpy(&bits, head->values + shown * head->width, head->width);
        const size_t length = shuf__value_text(shape->dtype, bits, text);
        const size_t rest = shown + 1 < all ? strlen(" ...") : 0;
        if (used + length + 1 + rest > room)
            break;
        used += (size_t)sprintf(line + used, "%s%s", shown > 0 ? " " : "", text);
    }
    if (shown > 0)
        shuf__print_line(stdout, "values", "%s%s", line, shown < all ? " ..." : "");
}

/* Prints the first values of a result in one line, as many values as the terminal behind stdout has
 * room for. Prints nothing if stdout is not a terminal, or if the daemon does not have the values
 * any more. */
static void print_head_line(shuf *daemon, const struct shuf__output_options *o)
{
    static struct head head;
    const size_t columns = shuf__terminal_columns(STDOUT_FILENO);
    if (!isatty(STDOUT_FILENO) || o->shape.bytes > BYTES_MOST || columns <= KEY_COLUMNS)
        return;
    head = (struct head){.width = o->shape.width};
    shuf_status status = shuf_each(daemon, o->request, take_chunk, &head, NULL);
    if (status == SHUF_OK || status == SHUF_CANCELLED)
        print_values(&head, &o->shape, columns - KEY_COLUMNS);
}

/* ---- The summary ---- */

static uint64_t count_values(const shuf_shape *shape)
{
    return shape->rows * shape->count;
}

static void print_samples(FILE *to, const char *key, shuf_dtype dtype, const uint64_t *values,
                          unsigned count)
{
    char text[SHUF__VALUE_TEXT];
    print_key(to, key);
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
                         shuf__plural(shape->rows), shape->count, shuf__dtype_text(shape->dtype),
                         shuf__units_bytes(text, shape->bytes));
    else
        shuf__print_line(to, "shape", "%" PRIu64 " %s (%s)", shape->count,
                         shuf__dtype_text(shape->dtype), shuf__units_bytes(text, shape->bytes));
}

static void print_summary_lines(const struct shuf__summary *s, FILE *to)
{
    const shuf_result *r = s->result;
    if (s->options->out)
        shuf__print_line(to, "written", "%s (%s)", s->options->out,
                         shuf__format_name(s->options->format));
    shuf__print_line(to, "backend", "%s, %s", r->backend, r->device);
    print_request(s->options, r, to);
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
    request_to_json(s->options, s->result, object);
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

static void print_summary_json(const struct shuf__summary *s, FILE *to)
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

static void print_ready(const struct shuf__summary *s, FILE *to)
{
    char time[SHUF__UNITS_TEXT], bytes[SHUF__UNITS_TEXT];
    const shuf_result *r = s->result;
    fputs("ready in shufd: ", to);
    print_request_short(s->options, r, to);
    fprintf(to, ": %s, computed in %s\n", shuf__units_bytes(bytes, r->shape.bytes),
            shuf__units_time(time, r->device_ns));
}

static void print_ready_json(const struct shuf__summary *s, FILE *to)
{
    json_t *object = json_object();
    json_object_set_new(object, "ready", json_true());
    add_request(object, s);
    add_shape(object, &s->result->shape);
    shuf__json_seconds(object, "compute_seconds", s->result->device_ns);
    shuf__json_seconds(object, "total_seconds", s->seen_ns);
    print_object(s, object, to);
}

/* ---- The output ---- */

int shuf__check_error_stream(void)
{
    return ferror(stderr) ? shuf__fail_with(EX_IOERR, "standard error: %s", strerror(errno))
                          : EX_OK;
}

static void print_lines(shuf *daemon, const struct shuf__summary *summary)
{
    print_summary_lines(summary, stdout);
    if (daemon && !summary->options->out)
        print_head_line(daemon, summary->options);
}

/* True if --quiet suppresses the summary. This is so if the values go to a file or stay in the
 * daemon, and no option requests a summary. */
static bool is_unasked(const struct shuf__output_options *o)
{
    const bool wants_moments = shuf__wants_moments(o->request);
    return o->daemon.quiet && !o->daemon.json && !wants_moments && (o->out || o->prefetch);
}

int shuf__print_summary(shuf *daemon, const struct shuf__summary *summary)
{
    const struct shuf__output_options *o = summary->options;
    const bool to_stdout = shuf__writes_to_stdout(o);
    if (is_unasked(o))
        return EX_OK;
    if (o->prefetch) {
        (o->daemon.json ? print_ready_json : print_ready)(summary, stdout);
        return EX_OK;
    }
    if (o->daemon.json)
        print_summary_json(summary, to_stdout ? stderr : stdout);
    else if (!to_stdout)
        print_lines(daemon, summary);
    else if (shuf__wants_moments(o->request)) /* the user gave --summary */
        print_summary_lines(summary, stderr);
    return to_stdout ? shuf__check_error_stream() : EX_OK;
}
