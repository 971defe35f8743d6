/* SPDX-License-Identifier: MIT
 *
 * See question.h.
 */
#include "question.h"

#include "connection.h"
#include "lease.h"
#include "moments.h"
#include "parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)SHUF_GAUSS == (int)SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS &&
                   (int)SHUF_UNIFORM == (int)SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM &&
                   (int)SHUF_TABLE == (int)SHUF__METHOD__METHOD_TABLE &&
                   (int)SHUF_BOX_MULLER == (int)SHUF__METHOD__METHOD_BOX_MULLER,
               "the public types are the wire's");

/* A field whose view was forgotten would be passed over in silence. */
static shuf_status check_view(const shuf_permutation *what, struct shuf__error *error)
{
    const struct {
        const char *field;
        uint64_t value;
        shuf_view view;
    } fields[] = {
        {"offset", what->offset, SHUF_VIEW_SLICE}, {"count", what->count, SHUF_VIEW_SLICE},
        {"stride", what->stride, SHUF_VIEW_SLICE}, {"rank", what->rank, SHUF_VIEW_SHARD},
        {"world", what->world, SHUF_VIEW_SHARD},   {"drop_last", what->drop_last, SHUF_VIEW_SHARD},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value != 0 && fields[i].view != what->view)
            return shuf__fail(error, SHUF_INVALID, "%s %" PRIu64 ": expected 0 without view %s",
                              fields[i].field, fields[i].value,
                              fields[i].view == SHUF_VIEW_SLICE ? "SLICE" : "SHARD");
    return SHUF_OK;
}

static shuf_status set_view(struct shuf__question *q, const shuf_permutation *what,
                            struct shuf__error *error)
{
    switch (what->view) {
    case SHUF_VIEW_ALL:
        return SHUF_OK;
    case SHUF_VIEW_SLICE:
        q->slice = (Shuf__Slice)SHUF__SLICE__INIT;
        q->slice.offset = what->offset;
        q->slice.count = what->count;
        q->slice.stride = what->stride;
        q->permute.view_case = SHUF__PERMUTE__VIEW_SLICE;
        q->permute.slice = &q->slice;
        return SHUF_OK;
    case SHUF_VIEW_SHARD:
        q->shard = (Shuf__Shard)SHUF__SHARD__INIT;
        q->shard.rank = what->rank;
        q->shard.world = what->world;
        q->shard.drop_last = what->drop_last;
        q->permute.view_case = SHUF__PERMUTE__VIEW_SHARD;
        q->permute.shard = &q->shard;
        return SHUF_OK;
    }
    return shuf__fail(error, SHUF_INVALID, "view %d: expected ALL, SLICE or SHARD",
                      (int)what->view);
}

#define SET_TERMS(q, body)                        \
    do {                                          \
        (q)->terms.accept = &(body).accept;       \
        (q)->terms.n_accept = &(body).n_accept;   \
        (q)->terms.give_back = &(body).give_back; \
    } while (0)

static void set_algorithm(char **field, const char *name)
{
    if (name)
        *field = (char *)(uintptr_t)name; /* only read */
}

static void set_shape(struct shuf__question *q)
{
    const struct shuf__shape shape = shuf__request_shape(&q->what);
    q->shape = (shuf_shape){.rows = shape.rows,
                            .count = shape.count,
                            .dtype = q->what.dtype,
                            .width = (unsigned)shape.width,
                            .bytes = shape.bytes};
}

static shuf_status make_permute(struct shuf__question *q, const shuf_permutation *what,
                                struct shuf__error *error)
{
    q->request.body_case = SHUF__REQUEST__BODY_PERMUTE;
    q->request.permute = &q->permute;
    q->permute = (Shuf__Permute)SHUF__PERMUTE__INIT;
    SET_TERMS(q, q->permute);
    q->terms.fingerprint = &q->permute.fingerprint;
    q->terms.prefetch = &q->permute.prefetch;
    q->terms.event = &q->permute.event;
    q->permute.n = what->n;
    q->permute.seed = what->seed;
    q->permute.epoch = what->epoch;
    q->permute.epochs = what->epochs;
    q->permute.dtype = (Shuf__Dtype)what->dtype;
    q->permute.fingerprint = what->fingerprint;
    set_algorithm(&q->permute.algorithm, what->algorithm);
    if (set_view(q, what, error) || check_view(what, error))
        return error->status;
    return shuf__parse_permute(&q->permute, &q->what, error);
}

static shuf_status make_stream(struct shuf__question *q, const shuf_numbers *what,
                               struct shuf__error *error)
{
    q->request.body_case = SHUF__REQUEST__BODY_STREAM;
    q->request.stream = &q->stream;
    q->stream = (Shuf__Stream)SHUF__STREAM__INIT;
    SET_TERMS(q, q->stream);
    q->terms.fingerprint = &q->stream.fingerprint;
    q->terms.prefetch = &q->stream.prefetch;
    q->terms.event = &q->stream.event;
    q->stream.distribution = (Shuf__Distribution)what->distribution;
    q->stream.method = (Shuf__Method)what->method;
    q->stream.seed = what->seed;
    q->stream.stream = what->stream;
    q->stream.offset = what->offset;
    q->stream.count = what->count;
    q->stream.mean = what->mean;
    q->stream.std = what->std;
    q->stream.dtype = (Shuf__Dtype)what->dtype;
    q->stream.fingerprint = what->fingerprint;
    q->stream.sums = what->moments;
    return shuf__parse_stream(&q->stream, &q->what, error);
}

/* A copy of this process's own is nothing that the daemon could look into. */
static shuf_status set_input(struct shuf__question *q, const struct shuf__lease *input,
                             struct shuf__error *error)
{
    if (input->open.id == 0)
        return shuf__fail(error, SHUF_INVALID,
                          "input by %s: a copy in this process, expected a buffer, or a lease by "
                          "memfd, cuda-fd or cuda-ipc",
                          shuf_transport_name(input->open.transport));
    q->shuffle.lease = input->open.id;
    q->connection = input->connection;
    return shuf__shuffle_check_input(&q->what, input->open.id, input->open.result.shape.bytes,
                                     error);
}

static shuf_status make_shuffle(struct shuf__question *q, const shuf_records *what,
                                const struct shuf__lease *input, struct shuf__error *error)
{
    q->request.body_case = SHUF__REQUEST__BODY_SHUFFLE;
    q->request.shuffle = &q->shuffle;
    q->shuffle = (Shuf__Shuffle)SHUF__SHUFFLE__INIT;
    SET_TERMS(q, q->shuffle);
    q->terms.event = &q->shuffle.event;
    q->shuffle.n = what->n;
    q->shuffle.seed = what->seed;
    q->shuffle.epoch = what->epoch;
    q->shuffle.inverse = what->inverse;
    q->shuffle.record = what->record;
    set_algorithm(&q->shuffle.algorithm, what->algorithm);
    if (shuf__parse_shuffle(&q->shuffle, &q->what, error))
        return error->status;
    return set_input(q, input, error);
}

static shuf_status make_allocate(struct shuf__question *q, uint64_t bytes,
                                 struct shuf__error *error)
{
    q->request.body_case = SHUF__REQUEST__BODY_ALLOCATE;
    q->request.allocate = &q->allocate;
    q->allocate = (Shuf__Allocate)SHUF__ALLOCATE__INIT;
    SET_TERMS(q, q->allocate);
    q->allocate.bytes = bytes;
    return shuf__parse_allocate(&q->allocate, &q->what, error);
}

static shuf_status make(struct shuf__question *q, struct shuf__wanted wanted,
                        struct shuf__error *error)
{
    return wanted.permutation ? make_permute(q, wanted.permutation, error)
           : wanted.numbers   ? make_stream(q, wanted.numbers, error)
           : wanted.records   ? make_shuffle(q, wanted.records, wanted.input, error)
                              : make_allocate(q, wanted.buffer, error);
}

shuf_status shuf__question_make(struct shuf__question *q, struct shuf__wanted wanted,
                                struct shuf__error *error)
{
    q->request = (Shuf__Request)SHUF__REQUEST__INIT;
    memset(&q->terms, 0, sizeof q->terms);
    q->connection = 0;
    q->transports = 0;
    if (make(q, wanted, error))
        return error->status;
    set_shape(q);
    return SHUF_OK;
}

static bool is_stream(const struct shuf__question *q)
{
    return q->what.kind == SHUF__STREAM;
}

bool shuf__question_is_buffer(const struct shuf__question *q)
{
    return q->what.kind == SHUF__BUFFER;
}

shuf_status shuf__question_accept(struct shuf__question *q, unsigned transports,
                                  struct shuf__error *error)
{
    q->transports = transports;
    *q->terms.accept = q->accept;
    return shuf__transport_list(transports, q->accept, q->terms.n_accept, error);
}

static void set(protobuf_c_boolean *term)
{
    if (term)
        *term = true;
}

void shuf__question_fingerprint(struct shuf__question *q)
{
    set(q->terms.fingerprint);
}

void shuf__question_prefetch(struct shuf__question *q)
{
    set(q->terms.prefetch);
}

void shuf__question_event(struct shuf__question *q)
{
    set(q->terms.event);
}

void shuf__question_give_back(struct shuf__question *q, Shuf__Release *release)
{
    *q->terms.give_back = release;
}

static shuf_status tell_shape(struct shuf__wanted wanted, shuf_shape *shape, char *message,
                              size_t size)
{
    struct shuf__question q;
    struct shuf__error error = {0};
    shuf_status status = shuf__question_make(&q, wanted, &error);
    if (status == SHUF_OK)
        *shape = q.shape;
    if (message && size > 0)
        snprintf(message, size, "%s", error.text);
    return status;
}

shuf_status shuf_permutation_shape(const shuf_permutation *what, shuf_shape *shape, char *message,
                                   size_t size)
{
    return tell_shape((struct shuf__wanted){.permutation = what}, shape, message, size);
}

shuf_status shuf_numbers_shape(const shuf_numbers *what, shuf_shape *shape, char *message,
                               size_t size)
{
    return tell_shape((struct shuf__wanted){.numbers = what}, shape, message, size);
}

static shuf_status check_subject(const struct shuf__question *q, const Shuf__ResultReply *reply,
                                 struct shuf__error *error)
{
    const int asked = is_stream(q) ? (int)q->stream.distribution : 0;
    if ((int)reply->distribution != asked)
        return shuf__fail(error, SHUF_PROTOCOL, "reply distribution %d: expected %d",
                          (int)reply->distribution, asked);
    const int method = is_stream(q) ? (int)q->stream.method : 0;
    if ((int)reply->method != method)
        return shuf__fail(error, SHUF_PROTOCOL, "reply method %d: expected %d", (int)reply->method,
                          method);
    if (is_stream(q) && q->stream.sums && !q->stream.prefetch && !reply->sums)
        return shuf__fail(error, SHUF_PROTOCOL, "reply without sums: expected them");
    const uint64_t record = q->what.kind == SHUF__SHUFFLE ? q->what.shuffle.record : 0;
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

/* At most SHUF_EDGE of `count` values: the first of a head, the last of a tail. */
static unsigned copy_edge(uint64_t edge[SHUF_EDGE], const uint64_t *values, size_t count, bool tail)
{
    unsigned kept = count < SHUF_EDGE ? (unsigned)count : SHUF_EDGE;
    if (kept > 0)
        memcpy(edge, values + (tail ? count - kept : 0), kept * sizeof *edge);
    return kept;
}

shuf_status shuf__result_read(const struct shuf__question *q, const Shuf__Reply *reply,
                              shuf_result *result, struct shuf__error *error)
{
    if (reply->body_case != SHUF__REPLY__BODY_RESULT)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a ResultReply",
                          (int)reply->body_case);
    const Shuf__ResultReply *p = reply->result;
    if (check_shape(&q->shape, p, error) || check_subject(q, p, error))
        return error->status;
    *result = (shuf_result){.shape = q->shape};
    result->distribution = (shuf_distribution)p->distribution;
    result->method = (shuf_method)p->method;
    shuf__copy_word(result->algorithm, sizeof result->algorithm, p->algorithm);
    shuf__copy_word(result->backend, sizeof result->backend, p->backend);
    shuf__copy_word(result->device, sizeof result->device, p->device);
    result->device_ns = p->device_ns;
    result->fingerprint = p->fingerprint;
    result->heads = copy_edge(result->head, p->head, p->n_head, false);
    result->tails = copy_edge(result->tail, p->tail, p->n_tail, true);
    if (p->sums)
        result->moments = shuf__moments_of(p->sums, p->count);
    return SHUF_OK;
}
