/* SPDX-License-Identifier: MIT
 *
 * See request_message.h.
 */
#include "request_message.h"

#include "algorithm.h"
#include "connection.h"
#include "dtype.h"
#include "request.h"
#include "result_message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define X(name, number, text, parameters, types) \
    _Static_assert((int)SHUF_##name == number, "public enums have the numbers of distribution.h");
SHUF_NAMED_DISTRIBUTION_MAP(X)
#undef X

_Static_assert((int)SHUF_TABLE == (int)SHUF__METHOD__METHOD_TABLE &&
                   (int)SHUF_BOX_MULLER == (int)SHUF__METHOD__METHOD_BOX_MULLER,
               "public enums have the wire's numbers");

/* ---- From a message ---- */

/* NULL for "". A daemon may send anything: a terminal may show the text. */
static const char *read_name(char *name)
{
    shuf__make_printable(name);
    return *name ? name : NULL;
}

static shuf_permutation read_permutation(const Shuf__Permutation *from)
{
    static const Shuf__Permutation absent = SHUF__PERMUTATION__INIT;
    const Shuf__Permutation *p = from ? from : &absent;
    return (shuf_permutation){.algorithm = read_name(p->algorithm),
                              .n = p->n,
                              .seed = p->seed,
                              .key = read_name(p->key),
                              .epoch = p->epoch,
                              .chunk = p->chunk,
                              .window = p->window};
}

static shuf_request read_permute(const Shuf__Permute *from)
{
    shuf_request request = {.permutation = read_permutation(from->permutation)};
    shuf_permutation *p = &request.permutation;
    p->epochs = from->epochs;
    p->dtype = (shuf_dtype)from->dtype;
    if (from->view_case == SHUF__PERMUTE__VIEW_SLICE) {
        p->view = SHUF_VIEW_SLICE;
        p->offset = from->slice->offset;
        p->count = from->slice->count;
        p->stride = from->slice->stride;
    }
    return request;
}

static shuf_request read_stream(const Shuf__Stream *from)
{
    return (shuf_request){SHUF_NUMBERS,
                          .numbers = {.distribution = (shuf_distribution)from->distribution,
                                      .method = (shuf_method)from->method,
                                      .seed = from->seed,
                                      .stream = from->stream,
                                      .key = read_name(from->key),
                                      .offset = from->offset,
                                      .count = from->count,
                                      .mean = from->mean,
                                      .std = from->std,
                                      .bound = from->bound,
                                      .dtype = (shuf_dtype)from->dtype}};
}

static shuf_request read_shuffle(const Shuf__Shuffle *from)
{
    const shuf_permutation p = read_permutation(from->permutation);
    return (shuf_request){SHUF_RECORDS, .records = {.algorithm = p.algorithm,
                                                    .n = p.n,
                                                    .record = from->record,
                                                    .seed = p.seed,
                                                    .epoch = p.epoch,
                                                    .key = p.key,
                                                    .inverse = from->inverse}};
}

static shuf_request read_exchange(const Shuf__Exchange *from)
{
    const shuf_permutation p = read_permutation(from->permutation);
    return (shuf_request){SHUF_RANKS, .ranks = {.algorithm = p.algorithm,
                                                .n = p.n,
                                                .seed = p.seed,
                                                .epoch = p.epoch,
                                                .key = p.key,
                                                .inverse = from->inverse,
                                                .rank = from->rank,
                                                .world = from->world,
                                                .part = from->part}};
}

shuf_request shuf__request_of_message(const Shuf__Result *from)
{
    switch (from->what_case) {
    case SHUF__RESULT__WHAT_PERMUTE:
        return read_permute(from->permute);
    case SHUF__RESULT__WHAT_STREAM:
        return read_stream(from->stream);
    case SHUF__RESULT__WHAT_SHUFFLE:
        return read_shuffle(from->shuffle);
    case SHUF__RESULT__WHAT_EXCHANGE:
        return read_exchange(from->exchange);
    case SHUF__RESULT__WHAT_BUFFER:
        return (shuf_request){SHUF_BUFFER, .bytes = from->buffer->bytes};
    default:
        return (shuf_request){.kind = SHUF_OTHER_KIND};
    }
}

/* ---- To a message ---- */

shuf_status shuf__check_names(const char *algorithm, const char *key, struct shuf__error *error)
{
    char expected[SHUF__ALGORITHM_LIST];
    if (algorithm && !*algorithm)
        return shuf__fail(error, SHUF_INVALID,
                          "algorithm \"\": expected %s, or NULL for the default",
                          shuf__algorithm_list(expected));
    if (key && !*key)
        return shuf__fail(error, SHUF_INVALID,
                          "key \"\": expected the name of a key, 1 to %d letters, digits, '.', '_' "
                          "and '-', or NULL for the seed",
                          SHUF__KEY_NAME);
    return SHUF_OK;
}

static void set_name(char **field, const char *name)
{
    if (name)
        *field = (char *)(uintptr_t)name; /* only read */
}

Shuf__Permutation shuf__name_permutation(const shuf_permutation *from)
{
    Shuf__Permutation permutation = SHUF__PERMUTATION__INIT;
    permutation.n = from->n;
    permutation.seed = from->seed;
    permutation.epoch = from->epoch;
    permutation.chunk = from->chunk;
    permutation.window = from->window;
    set_name(&permutation.algorithm, from->algorithm);
    set_name(&permutation.key, from->key);
    return permutation;
}

/* Rejects fields of another view than the selected one, because they would have no effect. */
static shuf_status check_view_fields(const shuf_permutation *permutation, struct shuf__error *error)
{
    enum { SLICE = 1 << SHUF_VIEW_SLICE, SHARD = 1 << SHUF_VIEW_SHARD };
    static const char *const names[] = {
        [SLICE] = "SLICE", [SHARD] = "SHARD", [SLICE | SHARD] = "SLICE or SHARD"};
    const struct {
        const char *field;
        uint64_t value;
        int views; /* a set of the views that have the field */
    } fields[] = {
        {"offset", permutation->offset, SLICE},       {"count", permutation->count, SLICE | SHARD},
        {"stride", permutation->stride, SLICE},       {"rank", permutation->rank, SHARD},
        {"world", permutation->world, SHARD},         {"step", permutation->step, SHARD},
        {"drop_last", permutation->drop_last, SHARD},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value != 0 && !(fields[i].views & 1 << permutation->view))
            return shuf__fail(error, SHUF_INVALID, "%s %" PRIu64 ": expected 0 without view %s",
                              fields[i].field, fields[i].value, names[fields[i].views]);
    return SHUF_OK;
}

static shuf_status set_view(struct shuf__result_message *m, const shuf_permutation *permutation,
                            struct shuf__error *error)
{
    switch (permutation->view) {
    case SHUF_VIEW_ALL:
        return SHUF_OK;
    case SHUF_VIEW_SLICE:
        shuf__result_message_add_view(m, SHUF__PERMUTE__VIEW_SLICE);
        m->slice.offset = permutation->offset;
        m->slice.count = permutation->count;
        m->slice.stride = permutation->stride ? permutation->stride : 1;
        return SHUF_OK;
    case SHUF_VIEW_SHARD:
        shuf__result_message_add_view(m, SHUF__PERMUTE__VIEW_SHARD);
        m->shard.rank = permutation->rank;
        m->shard.world = permutation->world;
        m->shard.drop_last = permutation->drop_last;
        m->shard.step = permutation->step;
        m->shard.count = permutation->count;
        return SHUF_OK;
    }
    return shuf__fail(error, SHUF_INVALID, "view %d: expected ALL, SLICE or SHARD",
                      (int)permutation->view);
}

static shuf_status make_permute(struct shuf__result_message *m, const shuf_permutation *from,
                                struct shuf__error *error)
{
    shuf__result_message_init(m, SHUF__RESULT__WHAT_PERMUTE);
    m->permute.epochs = from->epochs;
    m->permute.dtype = (Shuf__Dtype)from->dtype;
    m->delivery.fingerprint = from->fingerprint;
    m->permutation = shuf__name_permutation(from);
    if (shuf__check_names(from->algorithm, from->key, error) || set_view(m, from, error))
        return error->status;
    return check_view_fields(from, error);
}

static shuf_status make_stream(struct shuf__result_message *m, const shuf_numbers *from,
                               struct shuf__error *error)
{
    shuf__result_message_init(m, SHUF__RESULT__WHAT_STREAM);
    m->stream.distribution = (Shuf__Distribution)from->distribution;
    m->stream.method = (Shuf__Method)from->method;
    m->stream.seed = from->seed;
    m->stream.stream = from->stream;
    m->stream.offset = from->offset;
    m->stream.count = from->count;
    m->stream.mean = from->mean;
    m->stream.std = from->std;
    m->stream.bound = from->bound;
    m->stream.dtype = (Shuf__Dtype)from->dtype;
    m->delivery.fingerprint = from->fingerprint;
    m->delivery.sums = from->moments;
    set_name(&m->stream.key, from->key);
    return shuf__check_names(NULL, from->key, error);
}

static shuf_status make_shuffle(struct shuf__result_message *m, const shuf_records *from,
                                struct shuf__error *error)
{
    shuf__result_message_init(m, SHUF__RESULT__WHAT_SHUFFLE);
    m->shuffle.inverse = from->inverse;
    m->shuffle.record = from->record;
    m->permutation = shuf__name_permutation(&(shuf_permutation){.algorithm = from->algorithm,
                                                                .n = from->n,
                                                                .seed = from->seed,
                                                                .key = from->key,
                                                                .epoch = from->epoch});
    return shuf__check_names(from->algorithm, from->key, error);
}

static shuf_status make_buffer(struct shuf__result_message *m, uint64_t bytes)
{
    shuf__result_message_init(m, SHUF__RESULT__WHAT_BUFFER);
    m->buffer.bytes = bytes;
    return SHUF_OK;
}

/* The lists are the caller's. */
static void set_list(uint64_t **field, size_t *length, const uint64_t *list, uint64_t world)
{
    *field = (uint64_t *)(uintptr_t)list; /* only read */
    *length = list ? world : 0;
}

static shuf_status make_exchange(struct shuf__result_message *m, const shuf_ranks *from,
                                 struct shuf__error *error)
{
    shuf__result_message_init(m, SHUF__RESULT__WHAT_EXCHANGE);
    m->exchange.inverse = from->inverse;
    m->exchange.rank = from->rank;
    m->exchange.world = from->world;
    m->exchange.part = from->part;
    set_list(&m->exchange.input, &m->exchange.n_input, from->input, from->world);
    set_list(&m->exchange.output, &m->exchange.n_output, from->output, from->world);
    m->permutation = shuf__name_permutation(&(shuf_permutation){.algorithm = from->algorithm,
                                                                .n = from->n,
                                                                .seed = from->seed,
                                                                .key = from->key,
                                                                .epoch = from->epoch});
    return shuf__check_names(from->algorithm, from->key, error);
}

static shuf_status make_result(struct shuf__result_message *m, const shuf_request *request,
                               struct shuf__error *error)
{
    switch (request->kind) {
    case SHUF_PERMUTATION:
        return make_permute(m, &request->permutation, error);
    case SHUF_NUMBERS:
        return make_stream(m, &request->numbers, error);
    case SHUF_RANKS:
        return make_exchange(m, &request->ranks, error);
    case SHUF_RECORDS:
        return make_shuffle(m, &request->records, error);
    case SHUF_BUFFER:
        return make_buffer(m, request->bytes);
    case SHUF_OTHER_KIND:
        break;
    }
    return shuf__fail(error, SHUF_INVALID,
                      "kind %d: expected PERMUTATION, NUMBERS, RANKS, RECORDS or BUFFER",
                      (int)request->kind);
}

static void set_shape(struct shuf__request_message *m)
{
    const struct shuf__shape shape = shuf__request_shape(&m->request);
    m->shape = (shuf_shape){.rows = shape.rows,
                            .count = shape.count,
                            .dtype = m->request.dtype,
                            .width = shape.width,
                            .bytes = shape.bytes};
}

shuf_status shuf__request_message_make(struct shuf__request_message *m, const shuf_request *request,
                                       struct shuf__error *error)
{
    m->message = (Shuf__Request)SHUF__REQUEST__INIT;
    m->generation = 0;
    m->needs_buffer = false;
    m->transports = 0;
    if (make_result(&m->result, request, error) ||
        shuf__parse_result(&m->result.result, &m->request, error))
        return error->status;
    m->message.body_case = SHUF__REQUEST__BODY_RESULT;
    m->message.result = &m->result.result;
    set_shape(m);
    return SHUF_OK;
}

/* ---- The delivery ---- */

static bool is_stream(const struct shuf__request_message *m)
{
    return m->request.kind == SHUF__STREAM;
}

bool shuf__request_message_is_buffer(const struct shuf__request_message *m)
{
    return m->request.kind == SHUF__BUFFER;
}

shuf_status shuf__request_message_accept(struct shuf__request_message *m, unsigned transports,
                                         struct shuf__error *error)
{
    m->transports = transports;
    m->result.delivery.accept = m->accept;
    return shuf__transport_list(transports, m->accept, &m->result.delivery.n_accept, error);
}

static bool has(const struct shuf__request_message *m, unsigned field)
{
    return shuf__delivery_fields(m->result.result.what_case) & field;
}

void shuf__request_message_set_fingerprint(struct shuf__request_message *m, uint64_t index)
{
    m->result.delivery.fingerprint = has(m, SHUF__HAS_FINGERPRINT);
    m->result.delivery.fingerprint_index = has(m, SHUF__HAS_FINGERPRINT) ? index : 0;
}

bool shuf__request_message_set_prefetch(struct shuf__request_message *m)
{
    m->result.delivery.prefetch = has(m, SHUF__HAS_PREFETCH);
    return m->result.delivery.prefetch;
}

void shuf__request_message_set_event(struct shuf__request_message *m)
{
    m->result.delivery.event = has(m, SHUF__HAS_EVENT);
}

void shuf__request_message_set_divisible(struct shuf__request_message *m)
{
    m->result.delivery.divisible = has(m, SHUF__HAS_DIVISIBLE);
}

void shuf__request_message_give_back(struct shuf__request_message *m, Shuf__Release *release)
{
    m->result.delivery.give_back = release;
}

/* ---- The reply ---- */

/* The reply has sums of powers of z = (x - centre) * scale. The centre is near the mean of x, so
 * the mean of z is about 0. So b - a * a, the variance of z, loses little precision. */
shuf_moments shuf__moments_from_sums(const Shuf__Sums *sums, uint64_t count)
{
    const double n = (double)count;
    const double a = sums->z1 / n, b = sums->z2 / n, c = sums->z3 / n, d = sums->z4 / n;
    /* Rounding would give equal values a variance, and may make that of others negative. */
    const bool equal = sums->least == sums->largest;
    const double m2 = equal ? 0 : fmax(b - a * a, 0);
    const double m3 = c - 3 * a * b + 2 * a * a * a;
    const double m4 = d - 4 * a * c + 6 * a * a * b - 3 * a * a * a * a;
    return (shuf_moments){
        .mean = equal ? sums->least : sums->centre + a / sums->scale,
        .variance = m2 / sums->scale / sums->scale,
        .skewness = m2 > 0 ? m3 / (m2 * sqrt(m2)) : (double)NAN,
        .kurtosis = m2 > 0 ? m4 / (m2 * m2) : (double)NAN,
        .least = sums->least,
        .largest = sums->largest,
    };
}

static shuf_status check_kind(const struct shuf__request_message *m, const Shuf__ResultReply *reply,
                              struct shuf__error *error)
{
    const int distribution = is_stream(m) ? (int)m->result.stream.distribution : 0;
    if ((int)reply->distribution != distribution)
        return shuf__fail(error, SHUF_PROTOCOL, "reply distribution %d: expected %d",
                          (int)reply->distribution, distribution);
    const int method = is_stream(m) ? (int)m->result.stream.method : 0;
    if ((int)reply->method != method)
        return shuf__fail(error, SHUF_PROTOCOL, "reply method %d: expected %d", (int)reply->method,
                          method);
    if (is_stream(m) && m->result.delivery.sums && !m->result.delivery.prefetch && !reply->sums)
        return shuf__fail(error, SHUF_PROTOCOL, "reply without sums: expected them");
    const uint64_t record = m->request.kind == SHUF__SHUFFLE ? m->request.shuffle.record : 0;
    if (reply->record != record)
        return shuf__fail(error, SHUF_PROTOCOL, "reply record %" PRIu64 ": expected %" PRIu64,
                          reply->record, record);
    return SHUF_OK;
}

static shuf_status check_shape(const shuf_shape *shape, const Shuf__ResultReply *reply,
                               struct shuf__error *error)
{
    if (reply->rows == shape->rows && reply->count == shape->count &&
        reply->bytes == shape->bytes && (int)reply->dtype == (int)shape->dtype)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL,
                      "reply of %" PRIu64 " x %" PRIu64 " values in %" PRIu64
                      " bytes: expected %" PRIu64 " x %" PRIu64 " in %" PRIu64,
                      reply->rows, reply->count, reply->bytes, shape->rows, shape->count,
                      shape->bytes);
}

/* Copies at most SHUF_SAMPLES of `count` values: the first or the last ones.
 * Returns their number. */
static unsigned copy_samples(uint64_t samples[SHUF_SAMPLES], const uint64_t *values, size_t count,
                             bool last)
{
    unsigned kept = count < SHUF_SAMPLES ? (unsigned)count : SHUF_SAMPLES;
    if (kept > 0)
        memcpy(samples, values + (last ? count - kept : 0), kept * sizeof *samples);
    return kept;
}

shuf_status shuf__check_key(const Shuf__ResultReply *reply, bool continues, uint64_t *seen,
                            struct shuf__error *error)
{
    if (continues && reply->key_check != *seen)
        return shuf__fail(
            error, SHUF_IO,
            "key: the daemon has other bits under this name now; the first values are "
            "of the old ones: call again");
    *seen = reply->key_check;
    return SHUF_OK;
}

shuf_status shuf__request_message_read_reply(const struct shuf__request_message *m,
                                             const Shuf__Reply *reply, shuf_result *result,
                                             struct shuf__error *error)
{
    if (shuf__reply_check(reply, SHUF__REPLY__BODY_RESULT, "a ResultReply", error))
        return error->status;
    const Shuf__ResultReply *p = reply->result;
    if (check_shape(&m->shape, p, error) || check_kind(m, p, error))
        return error->status;
    *result = (shuf_result){.shape = m->shape};
    result->distribution = (shuf_distribution)p->distribution;
    result->method = (shuf_method)p->method;
    shuf__copy_string(result->algorithm, sizeof result->algorithm, p->algorithm);
    shuf__copy_string(result->backend, sizeof result->backend, p->backend);
    shuf__copy_string(result->device, sizeof result->device, p->device);
    result->device_ns = p->device_ns;
    result->fingerprint = p->fingerprint;
    result->shared = p->shared;
    result->n_first = copy_samples(result->first, p->first, p->n_first, false);
    result->n_last = copy_samples(result->last, p->last, p->n_last, true);
    if (p->sums)
        result->moments = shuf__moments_from_sums(p->sums, p->count);
    return SHUF_OK;
}

/* ---- The caller's memory ---- */

/* The default of the type explains a size that the caller did not expect. */
static const char *origin_of_type(const shuf_request *request)
{
    if (request->kind == SHUF_PERMUTATION && request->permutation.dtype == SHUF_AUTO)
        return ", dtype auto";
    if (request->kind == SHUF_NUMBERS && request->numbers.dtype == SHUF_AUTO)
        return ", dtype auto; SHUF_F32 has 4 bytes";
    return "";
}

shuf_status shuf__refuse_bytes(const shuf_request *request, const shuf_shape *shape, size_t bytes,
                               struct shuf__error *error)
{
    if (request->kind == SHUF_RECORDS)
        return shuf__fail(error, SHUF_INVALID,
                          "bytes %zu: expected at least %" PRIu64 " for %" PRIu64
                          " record%s of %" PRIu64 " byte%s",
                          bytes, shape->bytes, shape->count, shuf__plural(shape->count),
                          shape->width, shuf__plural(shape->width));
    char rows[40] = "", type[SHUF__DTYPE_TEXT];
    if (shape->rows != 1)
        snprintf(rows, sizeof rows, "%" PRIu64 " rows of ", shape->rows);
    return shuf__fail(error, SHUF_INVALID,
                      "bytes %zu: expected at least %" PRIu64 " for %s%" PRIu64
                      " value%s of %" PRIu64 " bytes (%s%s)",
                      bytes, shape->bytes, rows, shape->count, shuf__plural(shape->count),
                      shape->width, shuf__dtype_label((int)shape->dtype, type),
                      origin_of_type(request));
}
