/* SPDX-License-Identifier: MIT
 *
 * See result_message.h.
 */
#include "result_message.h"

#include "algorithm.h"

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

/* ---- parts --------------------------------------------------------------------------------- */

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

/* ---- of a request -------------------------------------------------------------------------- */

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
