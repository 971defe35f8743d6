/* SPDX-License-Identifier: MIT
 *
 * See request_message.h.
 */
#include "request_message.h"

#include "check_names.h"
#include "connection.h"
#include "moments_from_sums.h"
#include "parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)SHUF_GAUSS == (int)SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS &&
                   (int)SHUF_UNIFORM == (int)SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM &&
                   (int)SHUF_TABLE == (int)SHUF__METHOD__METHOD_TABLE &&
                   (int)SHUF_BOX_MULLER == (int)SHUF__METHOD__METHOD_BOX_MULLER,
               "public enums have the wire's numbers");

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

static shuf_status set_view(struct shuf__request_message *m, const shuf_permutation *permutation,
                            struct shuf__error *error)
{
    switch (permutation->view) {
    case SHUF_VIEW_ALL:
        return SHUF_OK;
    case SHUF_VIEW_SLICE:
        m->slice = (Shuf__Slice)SHUF__SLICE__INIT;
        m->slice.offset = permutation->offset;
        m->slice.count = permutation->count;
        m->slice.stride = permutation->stride ? permutation->stride : 1;
        m->body.permute.view_case = SHUF__PERMUTE__VIEW_SLICE;
        m->body.permute.slice = &m->slice;
        return SHUF_OK;
    case SHUF_VIEW_SHARD:
        m->shard = (Shuf__Shard)SHUF__SHARD__INIT;
        m->shard.rank = permutation->rank;
        m->shard.world = permutation->world;
        m->shard.drop_last = permutation->drop_last;
        m->shard.step = permutation->step;
        m->shard.count = permutation->count;
        m->body.permute.view_case = SHUF__PERMUTE__VIEW_SHARD;
        m->body.permute.shard = &m->shard;
        return SHUF_OK;
    }
    return shuf__fail(error, SHUF_INVALID, "view %d: expected ALL, SLICE or SHARD",
                      (int)permutation->view);
}

/* Points ->fields at the fields that every body has. */
#define SET_FIELDS(m, part)                        \
    do {                                           \
        (m)->fields.accept = &(part).accept;       \
        (m)->fields.n_accept = &(part).n_accept;   \
        (m)->fields.give_back = &(part).give_back; \
    } while (0)

static void set_name(char **field, const char *name)
{
    if (name)
        *field = (char *)(uintptr_t)name; /* only read */
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

static shuf_status make_permute(struct shuf__request_message *m,
                                const shuf_permutation *permutation, struct shuf__error *error)
{
    m->message.body_case = SHUF__REQUEST__BODY_PERMUTE;
    m->message.permute = &m->body.permute;
    m->body.permute = (Shuf__Permute)SHUF__PERMUTE__INIT;
    SET_FIELDS(m, m->body.permute);
    m->fields.fingerprint = &m->body.permute.fingerprint;
    m->fields.fingerprint_index = &m->body.permute.fingerprint_index;
    m->fields.prefetch = &m->body.permute.prefetch;
    m->fields.event = &m->body.permute.event;
    m->fields.divisible = &m->body.permute.divisible;
    m->body.permute.n = permutation->n;
    m->body.permute.seed = permutation->seed;
    m->body.permute.epoch = permutation->epoch;
    m->body.permute.epochs = permutation->epochs;
    m->body.permute.dtype = (Shuf__Dtype)permutation->dtype;
    m->body.permute.fingerprint = permutation->fingerprint;
    set_name(&m->body.permute.algorithm, permutation->algorithm);
    set_name(&m->body.permute.key, permutation->key);
    if (shuf__check_names(permutation->algorithm, permutation->key, error) ||
        set_view(m, permutation, error) || check_view_fields(permutation, error))
        return error->status;
    return shuf__parse_permute(&m->body.permute, &m->request, error);
}

static shuf_status make_stream(struct shuf__request_message *m, const shuf_numbers *numbers,
                               struct shuf__error *error)
{
    m->message.body_case = SHUF__REQUEST__BODY_STREAM;
    m->message.stream = &m->body.stream;
    m->body.stream = (Shuf__Stream)SHUF__STREAM__INIT;
    SET_FIELDS(m, m->body.stream);
    m->fields.fingerprint = &m->body.stream.fingerprint;
    m->fields.fingerprint_index = &m->body.stream.fingerprint_index;
    m->fields.prefetch = &m->body.stream.prefetch;
    m->fields.event = &m->body.stream.event;
    m->fields.divisible = &m->body.stream.divisible;
    m->body.stream.distribution = (Shuf__Distribution)numbers->distribution;
    m->body.stream.method = (Shuf__Method)numbers->method;
    m->body.stream.seed = numbers->seed;
    m->body.stream.stream = numbers->stream;
    m->body.stream.offset = numbers->offset;
    m->body.stream.count = numbers->count;
    m->body.stream.mean = numbers->mean;
    m->body.stream.std = numbers->std;
    m->body.stream.dtype = (Shuf__Dtype)numbers->dtype;
    m->body.stream.fingerprint = numbers->fingerprint;
    m->body.stream.sums = numbers->moments;
    set_name(&m->body.stream.key, numbers->key);
    if (shuf__check_names(NULL, numbers->key, error))
        return error->status;
    return shuf__parse_stream(&m->body.stream, &m->request, error);
}

/* Rejects a lease with the transport INLINE: the daemon cannot read this process's own memory. */
static shuf_status set_input(struct shuf__request_message *m,
                             const struct shuf__request_options *options, struct shuf__error *error)
{
    const shuf_lease *input = options->input;
    if (input->id == 0)
        return shuf__fail(error, SHUF_INVALID,
                          "input by %s: a copy in this process, expected a buffer, or a lease by "
                          "memfd, cuda-fd or cuda-ipc",
                          shuf_transport_name(input->transport));
    m->body.shuffle.lease = input->id;
    m->generation = options->input_generation;
    m->needs_buffer = options->input_is_buffer;
    return shuf__shuffle_check_input(&m->request, input->id, input->result.shape.bytes, error);
}

static shuf_status make_shuffle(struct shuf__request_message *m,
                                const struct shuf__request_options *options,
                                struct shuf__error *error)
{
    const shuf_records *records = options->records;
    m->message.body_case = SHUF__REQUEST__BODY_SHUFFLE;
    m->message.shuffle = &m->body.shuffle;
    m->body.shuffle = (Shuf__Shuffle)SHUF__SHUFFLE__INIT;
    SET_FIELDS(m, m->body.shuffle);
    m->fields.event = &m->body.shuffle.event;
    m->body.shuffle.n = records->n;
    m->body.shuffle.seed = records->seed;
    m->body.shuffle.epoch = records->epoch;
    m->body.shuffle.inverse = records->inverse;
    m->body.shuffle.record = records->record;
    set_name(&m->body.shuffle.algorithm, records->algorithm);
    set_name(&m->body.shuffle.key, records->key);
    if (shuf__check_names(records->algorithm, records->key, error) ||
        shuf__parse_shuffle(&m->body.shuffle, &m->request, error))
        return error->status;
    return set_input(m, options, error);
}

static shuf_status make_allocate(struct shuf__request_message *m, uint64_t bytes,
                                 struct shuf__error *error)
{
    m->message.body_case = SHUF__REQUEST__BODY_ALLOCATE;
    m->message.allocate = &m->body.allocate;
    m->body.allocate = (Shuf__Allocate)SHUF__ALLOCATE__INIT;
    SET_FIELDS(m, m->body.allocate);
    m->body.allocate.bytes = bytes;
    return shuf__parse_allocate(&m->body.allocate, &m->request, error);
}

/* The lists are the caller's. */
static void set_list(uint64_t **field, size_t *length, const uint64_t *list, uint64_t world)
{
    *field = (uint64_t *)(uintptr_t)list; /* only read */
    *length = list ? world : 0;
}

static shuf_status make_exchange(struct shuf__request_message *m, const shuf_ranks *ranks,
                                 struct shuf__error *error)
{
    m->message.body_case = SHUF__REQUEST__BODY_EXCHANGE;
    m->message.exchange = &m->body.exchange;
    m->body.exchange = (Shuf__Exchange)SHUF__EXCHANGE__INIT;
    SET_FIELDS(m, m->body.exchange);
    m->fields.prefetch = &m->body.exchange.prefetch;
    m->body.exchange.n = ranks->n;
    m->body.exchange.seed = ranks->seed;
    m->body.exchange.epoch = ranks->epoch;
    m->body.exchange.inverse = ranks->inverse;
    m->body.exchange.rank = ranks->rank;
    m->body.exchange.world = ranks->world;
    m->body.exchange.part = ranks->part;
    set_list(&m->body.exchange.input, &m->body.exchange.n_input, ranks->input, ranks->world);
    set_list(&m->body.exchange.output, &m->body.exchange.n_output, ranks->output, ranks->world);
    set_name(&m->body.exchange.algorithm, ranks->algorithm);
    set_name(&m->body.exchange.key, ranks->key);
    if (shuf__check_names(ranks->algorithm, ranks->key, error))
        return error->status;
    return shuf__parse_exchange(&m->body.exchange, &m->request, error);
}

static shuf_status make_body(struct shuf__request_message *m,
                             const struct shuf__request_options *options, struct shuf__error *error)
{
    return options->permutation ? make_permute(m, options->permutation, error)
           : options->numbers   ? make_stream(m, options->numbers, error)
           : options->ranks     ? make_exchange(m, options->ranks, error)
           : options->records   ? make_shuffle(m, options, error)
                                : make_allocate(m, options->buffer_bytes, error);
}

shuf_status shuf__request_message_make(struct shuf__request_message *m,
                                       const struct shuf__request_options *options,
                                       struct shuf__error *error)
{
    m->message = (Shuf__Request)SHUF__REQUEST__INIT;
    memset(&m->fields, 0, sizeof m->fields);
    m->generation = 0;
    m->needs_buffer = false;
    m->transports = 0;
    if (make_body(m, options, error))
        return error->status;
    set_shape(m);
    return SHUF_OK;
}

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
    *m->fields.accept = m->accept;
    return shuf__transport_list(transports, m->accept, m->fields.n_accept, error);
}

static void set_field(protobuf_c_boolean *field)
{
    if (field)
        *field = true;
}

void shuf__request_message_set_fingerprint(struct shuf__request_message *m, uint64_t index)
{
    set_field(m->fields.fingerprint);
    if (m->fields.fingerprint_index)
        *m->fields.fingerprint_index = index;
}

void shuf__request_message_set_prefetch(struct shuf__request_message *m)
{
    set_field(m->fields.prefetch);
}

void shuf__request_message_set_event(struct shuf__request_message *m)
{
    set_field(m->fields.event);
}

void shuf__request_message_set_divisible(struct shuf__request_message *m)
{
    set_field(m->fields.divisible);
}

void shuf__request_message_give_back(struct shuf__request_message *m, Shuf__Release *release)
{
    *m->fields.give_back = release;
}

static shuf_status check_kind(const struct shuf__request_message *m, const Shuf__ResultReply *reply,
                              struct shuf__error *error)
{
    const int distribution = is_stream(m) ? (int)m->body.stream.distribution : 0;
    if ((int)reply->distribution != distribution)
        return shuf__fail(error, SHUF_PROTOCOL, "reply distribution %d: expected %d",
                          (int)reply->distribution, distribution);
    const int method = is_stream(m) ? (int)m->body.stream.method : 0;
    if ((int)reply->method != method)
        return shuf__fail(error, SHUF_PROTOCOL, "reply method %d: expected %d", (int)reply->method,
                          method);
    if (is_stream(m) && m->body.stream.sums && !m->body.stream.prefetch && !reply->sums)
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

shuf_status shuf__request_message_read_reply(const struct shuf__request_message *m,
                                             const Shuf__Reply *reply, shuf_result *result,
                                             struct shuf__error *error)
{
    if (reply->body_case != SHUF__REPLY__BODY_RESULT)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a ResultReply",
                          (int)reply->body_case);
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
