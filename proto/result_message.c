/* SPDX-License-Identifier: MIT
 *
 * See result_message.h.
 */
#include "result_message.h"

#include "algorithm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

unsigned shuf__delivery_fields(Shuf__Result__WhatCase what)
{
    switch (what) {
    case SHUF__RESULT__WHAT_PERMUTE:
        return SHUF__HAS_PREFETCH | SHUF__HAS_EVENT | SHUF__HAS_FINGERPRINT | SHUF__HAS_DIVISIBLE;
    case SHUF__RESULT__WHAT_STREAM:
        return SHUF__HAS_PREFETCH | SHUF__HAS_EVENT | SHUF__HAS_FINGERPRINT | SHUF__HAS_DIVISIBLE |
               SHUF__HAS_SUMS;
    case SHUF__RESULT__WHAT_SHUFFLE:
        return SHUF__HAS_EVENT;
    case SHUF__RESULT__WHAT_EXCHANGE:
        return SHUF__HAS_PREFETCH;
    default:
        return 0;
    }
}

/* ---- Parts ---- */

static void init_body(struct shuf__result_message *m)
{
    switch (m->result.what_case) {
    case SHUF__RESULT__WHAT_PERMUTE:
        m->permute = (Shuf__Permute)SHUF__PERMUTE__INIT;
        break;
    case SHUF__RESULT__WHAT_STREAM:
        m->stream = (Shuf__Stream)SHUF__STREAM__INIT;
        break;
    case SHUF__RESULT__WHAT_SHUFFLE:
        m->shuffle = (Shuf__Shuffle)SHUF__SHUFFLE__INIT;
        break;
    case SHUF__RESULT__WHAT_EXCHANGE:
        m->exchange = (Shuf__Exchange)SHUF__EXCHANGE__INIT;
        break;
    default:
        m->buffer = (Shuf__Buffer)SHUF__BUFFER__INIT;
    }
}

void shuf__result_message_init(struct shuf__result_message *m, Shuf__Result__WhatCase what)
{
    m->result = (Shuf__Result)SHUF__RESULT__INIT;
    m->delivery = (Shuf__Delivery)SHUF__DELIVERY__INIT;
    m->permutation = (Shuf__Permutation)SHUF__PERMUTATION__INIT;
    m->result.what_case = what;
    init_body(m);
    shuf__result_message_link(m);
}

void shuf__result_message_add_view(struct shuf__result_message *m, Shuf__Permute__ViewCase view)
{
    m->permute.view_case = view;
    if (view == SHUF__PERMUTE__VIEW_SLICE)
        m->slice = (Shuf__Slice)SHUF__SLICE__INIT;
    else
        m->shard = (Shuf__Shard)SHUF__SHARD__INIT;
    shuf__result_message_link(m);
}

static void link_view(struct shuf__result_message *m)
{
    if (m->permute.view_case == SHUF__PERMUTE__VIEW_SLICE)
        m->permute.slice = &m->slice;
    else if (m->permute.view_case == SHUF__PERMUTE__VIEW_SHARD)
        m->permute.shard = &m->shard;
}

Shuf__Result *shuf__result_message_link(struct shuf__result_message *m)
{
    m->result.delivery = &m->delivery;
    m->result.permute = &m->permute; /* all bodies have one address */
    switch (m->result.what_case) {
    case SHUF__RESULT__WHAT_PERMUTE:
        m->permute.permutation = &m->permutation;
        link_view(m);
        break;
    case SHUF__RESULT__WHAT_SHUFFLE:
        m->shuffle.permutation = &m->permutation;
        break;
    case SHUF__RESULT__WHAT_EXCHANGE:
        m->exchange.permutation = &m->permutation;
        break;
    default:
        break;
    }
    return &m->result;
}

/* ---- Of a request ---- */

Shuf__Distribution shuf__wire_distribution(enum shuf__distribution distribution)
{
    return distribution == SHUF_DISTRIBUTION_BOX_MULLER ? SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS
                                                        : (Shuf__Distribution)distribution;
}

Shuf__Method shuf__wire_method(enum shuf__distribution distribution)
{
    return distribution == SHUF_DISTRIBUTION_BOX_MULLER ? SHUF__METHOD__METHOD_BOX_MULLER
                                                        : SHUF__METHOD__METHOD_TABLE;
}

static Shuf__Result__WhatCase what_of(enum shuf__request_kind kind)
{
    static const Shuf__Result__WhatCase whats[] = {
        [SHUF__PERMUTATION] = SHUF__RESULT__WHAT_PERMUTE,
        [SHUF__STREAM] = SHUF__RESULT__WHAT_STREAM,
        [SHUF__SHUFFLE] = SHUF__RESULT__WHAT_SHUFFLE,
        [SHUF__LOOK_UP] = SHUF__RESULT__WHAT__NOT_SET,
        [SHUF__BUFFER] = SHUF__RESULT__WHAT_BUFFER,
        [SHUF__EXCHANGE] = SHUF__RESULT__WHAT_EXCHANGE,
    };
    return whats[kind];
}

static char *string(const char *text)
{
    return (char *)(uintptr_t)text; /* only read */
}

static void set_permutation(const struct shuf__request *request, struct shuf__result_message *m)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    if (!p)
        return;
    m->permutation.algorithm = string(shuf__algorithm_name(p->algorithm));
    m->permutation.n = p->n;
    m->permutation.seed = p->seed;
    m->permutation.key = string(request->key.name);
    m->permutation.epoch = p->epoch;
    m->permutation.chunk = p->chunk;
    m->permutation.window = p->window;
}

static void set_permute(const struct shuf__request *request, struct shuf__result_message *m)
{
    const struct shuf__permutation *p = &request->permutation;
    m->permute.epochs = p->rows;
    m->permute.dtype = (Shuf__Dtype)request->dtype;
    if (p->offset == 0 && p->count == p->n && p->stride == 1)
        return;
    shuf__result_message_add_view(m, SHUF__PERMUTE__VIEW_SLICE);
    m->slice.offset = p->offset;
    m->slice.count = p->count;
    m->slice.stride = p->stride;
}

static void set_stream(const struct shuf__request *request, struct shuf__result_message *m)
{
    const struct shuf__stream *s = &request->stream;
    m->stream.distribution = shuf__wire_distribution(s->distribution);
    m->stream.method = shuf__wire_method(s->distribution);
    m->stream.seed = s->seed;
    m->stream.key = string(request->key.name);
    m->stream.stream = s->stream;
    m->stream.offset = s->offset;
    m->stream.count = s->count;
    m->stream.mean = s->mean;
    m->stream.std = s->std;
    m->stream.bound = s->bound;
    m->stream.dtype = (Shuf__Dtype)request->dtype;
}

void shuf__result_message_of(const struct shuf__request *request, struct shuf__result_message *m)
{
    shuf__result_message_init(m, what_of(request->kind));
    set_permutation(request, m);
    switch (request->kind) {
    case SHUF__PERMUTATION:
        set_permute(request, m);
        break;
    case SHUF__STREAM:
        set_stream(request, m);
        break;
    case SHUF__SHUFFLE:
        m->shuffle.inverse = request->shuffle.inverse;
        m->shuffle.record = request->shuffle.record;
        break;
    case SHUF__EXCHANGE:
        m->exchange.inverse = request->plan.inverse;
        m->exchange.rank = request->plan.rank;
        m->exchange.world = request->plan.world;
        m->exchange.part = request->plan.part;
        break;
    default:
        m->buffer.bytes = request->buffer.bytes;
    }
    m->result.delivery = NULL;
}

/* ---- Requests from messages ---- */

#define WORD(NAME, name) " " #name

#define X(name, number, text, bytes)                                   \
    _Static_assert((int)SHUF__DTYPE__DTYPE_##name == (int)SHUF_##name, \
                   "the wire has the numbers of shuf_dtype.h");
SHUF_DTYPE_MAP(X)
#undef X

#define X(name, number, text, parameters, types)                           \
    _Static_assert((int)SHUF__DISTRIBUTION__DISTRIBUTION_##name == number, \
                   "the wire has the numbers of distribution.h");
SHUF_NAMED_DISTRIBUTION_MAP(X)
#undef X

_Static_assert(SHUF__LOOK_UPS_MAX * sizeof(uint64_t) + 1280 <= SHUF__FRAME_MAX,
               "a frame holds the places and the other fields");

_Static_assert(2 * SHUF__RANKS_SIZED * sizeof(uint64_t) + 1280 <= SHUF__FRAME_MAX,
               "a frame holds the sizes and the other fields");

static struct shuf__view view_of(const Shuf__Permute *message)
{
    switch (message->view_case) {
    case SHUF__PERMUTE__VIEW_SLICE:
        return (struct shuf__view){.kind = SHUF__VIEW_SLICE,
                                   .offset = message->slice->offset,
                                   .count = message->slice->count,
                                   .stride = message->slice->stride};
    case SHUF__PERMUTE__VIEW_SHARD:
        return (struct shuf__view){.kind = SHUF__VIEW_SHARD,
                                   .rank = message->shard->rank,
                                   .world = message->shard->world,
                                   .step = message->shard->step,
                                   .count = message->shard->count,
                                   .drop_last = message->shard->drop_last};
    default:
        return (struct shuf__view){.kind = SHUF__VIEW_ALL};
    }
}

/* Sets the permutation of a request whose kind is set. An absent message is an empty one. */
static shuf_status parse_permutation(const Shuf__Permutation *message,
                                     struct shuf__request *request, struct shuf__error *error)
{
    static const Shuf__Permutation absent = SHUF__PERMUTATION__INIT;
    const Shuf__Permutation *m = message ? message : &absent;
    struct shuf__permutation *p = &request->permutation; /* the first member of each of them */
    p->n = m->n;
    p->seed = m->seed;
    p->epoch = m->epoch;
    p->chunk = m->chunk;
    p->window = m->window;
    if (shuf__algorithm_parse(m->algorithm, &p->algorithm, error))
        return error->status;
    return shuf__request_name_key(request, m->key, error);
}

static shuf_status parse_permute(const Shuf__Permute *message, struct shuf__request *request,
                                 struct shuf__error *error)
{
    const struct shuf__view view = view_of(message);
    *request = (struct shuf__request){.kind = SHUF__PERMUTATION,
                                      .dtype = (shuf_dtype)message->dtype,
                                      .permutation = {.rows = message->epochs}};
    if (parse_permutation(message->permutation, request, error))
        return error->status;
    return shuf__permutation_make(request, &view, error);
}

static shuf_status refuse_distribution(int distribution, struct shuf__error *error)
{
    char names[128] = "";
    for (int i = 1; i < SHUF_DISTRIBUTION_COUNT; i++)
        if (shuf__distribution_is_named(i))
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%d (%s)",
                     *names ? ", " : "", i, shuf__distribution_name((unsigned)i));
    return shuf__fail(error, SHUF_INVALID, "distribution %d: expected one of %s", distribution,
                      names);
}

/* A peer may send any number: protobuf does not check enums. */
static shuf_status parse_distribution(int distribution, int method, enum shuf__distribution *parsed,
                                      struct shuf__error *error)
{
    if (!shuf__distribution_is_named(distribution))
        return refuse_distribution(distribution, error);
    *parsed = (enum shuf__distribution)distribution;
    if (method == SHUF__METHOD__METHOD_TABLE)
        return SHUF_OK;
    if (method != SHUF__METHOD__METHOD_BOX_MULLER)
        return shuf__fail(error, SHUF_INVALID, "method %d: expected %d (table) or %d (box-muller)",
                          method, SHUF__METHOD__METHOD_TABLE, SHUF__METHOD__METHOD_BOX_MULLER);
    if (distribution != SHUF_DISTRIBUTION_GAUSS)
        return shuf__fail(error, SHUF_INVALID,
                          "method box-muller: expected none with %s, only gauss has it",
                          shuf__distribution_name((unsigned)distribution));
    *parsed = SHUF_DISTRIBUTION_BOX_MULLER;
    return SHUF_OK;
}

static shuf_status parse_stream(const Shuf__Stream *message, struct shuf__request *request,
                                struct shuf__error *error)
{
    *request = (struct shuf__request){.kind = SHUF__STREAM,
                                      .dtype = (shuf_dtype)message->dtype,
                                      .stream = {.seed = message->seed,
                                                 .stream = message->stream,
                                                 .offset = message->offset,
                                                 .count = message->count,
                                                 .mean = message->mean,
                                                 .std = message->std,
                                                 .bound = message->bound}};
    if (parse_distribution((int)message->distribution, (int)message->method,
                           &request->stream.distribution, error) ||
        shuf__request_name_key(request, message->key, error))
        return error->status;
    return shuf__stream_make(request, error);
}

static shuf_status parse_shuffle(const Shuf__Shuffle *message, struct shuf__request *request,
                                 struct shuf__error *error)
{
    *request = (struct shuf__request){
        .kind = SHUF__SHUFFLE, .shuffle = {.record = message->record, .inverse = message->inverse}};
    if (parse_permutation(message->permutation, request, error))
        return error->status;
    return shuf__shuffle_make(request, error);
}

static shuf_status check_length(const char *field, size_t length, uint64_t world,
                                struct shuf__error *error)
{
    if (length == 0 || length == world)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "%s: %zu size%s, expected world = %" PRIu64 ", or none",
                      field, length, shuf__plural(length), world);
}

static shuf_status parse_exchange(const Shuf__Exchange *message, struct shuf__request *request,
                                  struct shuf__error *error)
{
    *request = (struct shuf__request){.kind = SHUF__EXCHANGE,
                                      .plan = {.rank = message->rank,
                                               .world = message->world,
                                               .input = message->n_input ? message->input : NULL,
                                               .output = message->n_output ? message->output : NULL,
                                               .inverse = message->inverse,
                                               .part = message->part}};
    if (parse_permutation(message->permutation, request, error) ||
        check_length("input", message->n_input, message->world, error) ||
        check_length("output", message->n_output, message->world, error))
        return error->status;
    return shuf__exchange_make(request, error);
}

shuf_status shuf__parse_result(const Shuf__Result *message, struct shuf__request *request,
                               struct shuf__error *error)
{
    switch (message->what_case) {
    case SHUF__RESULT__WHAT_PERMUTE:
        return parse_permute(message->permute, request, error);
    case SHUF__RESULT__WHAT_STREAM:
        return parse_stream(message->stream, request, error);
    case SHUF__RESULT__WHAT_SHUFFLE:
        return parse_shuffle(message->shuffle, request, error);
    case SHUF__RESULT__WHAT_EXCHANGE:
        return parse_exchange(message->exchange, request, error);
    case SHUF__RESULT__WHAT_BUFFER:
        return shuf__buffer_make(request, message->buffer->bytes, error);
    default:
        return shuf__fail(error, SHUF_INVALID,
                          "result: unknown kind, expected one of" SHUF__RESULT_KINDS(WORD));
    }
}

const Shuf__Delivery *shuf__parse_delivery(const Shuf__Result *message, struct shuf__error *error)
{
    static const Shuf__Delivery absent = SHUF__DELIVERY__INIT;
    const Shuf__Delivery *d = message->delivery ? message->delivery : &absent;
    const unsigned has = shuf__delivery_fields(message->what_case);
    const struct {
        const char *name;
        bool is_set;
        unsigned field;
    } fields[] = {
        {"prefetch", d->prefetch, SHUF__HAS_PREFETCH},
        {"event", d->event, SHUF__HAS_EVENT},
        {"fingerprint", d->fingerprint || d->fingerprint_index, SHUF__HAS_FINGERPRINT},
        {"sums", d->sums, SHUF__HAS_SUMS},
        {"divisible", d->divisible, SHUF__HAS_DIVISIBLE},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].is_set && !(has & fields[i].field)) {
            shuf__fail(error, SHUF_INVALID, "%s: expected none, results of this kind have none",
                       fields[i].name);
            return NULL;
        }
    return d;
}

shuf_status shuf__parse_index(const Shuf__Index *message, struct shuf__request *request,
                              struct shuf__error *error)
{
    *request =
        (struct shuf__request){.kind = SHUF__LOOK_UP, .look_up = {.inverse = message->inverse}};
    if (parse_permutation(message->permutation, request, error))
        return error->status;
    if (message->n_at > SHUF__LOOK_UPS_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "at: %zu positions, expected at most %d in one request", message->n_at,
                          SHUF__LOOK_UPS_MAX);
    return shuf__look_up_make(request, message->at, message->n_at, error);
}
