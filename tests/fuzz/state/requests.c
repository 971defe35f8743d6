/* SPDX-License-Identifier: MIT
 *
 * See requests.h.
 */
#include "requests.h"

enum {
    ALGORITHMS = 3,
    EXCHANGED_MOST = 400,
    ONE_SIDED = 128, /* of the byte of the rank */
    LARGE = 2100000, /* values of a summary without a block: more than a tile has */
    LARGE_RARE = 16, /* most of these steps do nothing, because a large summary takes long */
};

static char algorithms[ALGORITHMS][16] = {"primefold", "philox24", "lcg"};

struct client *draw_client(struct fuzz_bytes *bytes)
{
    return &clients[fuzz_u8(bytes) % CLIENTS];
}

/* The id of a lease of the client, of its prefetched lease, or of no lease. */
static uint64_t draw_lease(const struct client *c, struct fuzz_bytes *bytes)
{
    const uint8_t number = fuzz_u8(bytes);
    if (number >= 250)
        return number;
    return c->held > 0 && number < 220 ? c->leases[number % c->held].id : c->prefetched;
}

/* ---- Fields that several requests have ------------------------------------------------------ */

struct common {
    Shuf__Transport accept[4];
    size_t n_accept;
    bool fingerprint, prefetch, event, gives_back;
    uint64_t fingerprint_index;
    Shuf__Release release;
    uint64_t lease;
};

static void draw_transports(uint8_t flags, struct common *common)
{
    static const struct {
        uint8_t flag;
        Shuf__Transport transport;
    } table[] = {{32, SHUF__TRANSPORT__TRANSPORT_INLINE},
                 {64, SHUF__TRANSPORT__TRANSPORT_MEMFD},
                 {1, SHUF__TRANSPORT__TRANSPORT_CUDA_FD}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if ((flags & 97) != 1 && (flags & table[i].flag)) /* never only device memory */
            common->accept[common->n_accept++] = table[i].transport;
}

static void draw_common(const struct client *c, struct fuzz_bytes *bytes, struct common *common,
                        struct waiting *w)
{
    const uint8_t flags = fuzz_u8(bytes);
    *common = (struct common){.fingerprint = flags & 1,
                              .fingerprint_index = (flags & 3) == 3 ? 77 : 0,
                              .prefetch = (flags & 6) == 6,
                              .event = (flags & 5) == 5,
                              .gives_back = (flags & 24) == 24,
                              .release = SHUF__RELEASE__INIT};
    draw_transports(flags, common);
    if (common->gives_back) {
        common->lease = w->released = draw_lease(c, bytes);
        common->release.n_lease = 1;
        common->release.lease = &common->lease;
    }
    w->maps = flags & 128;
    w->is_result = true;
}

/* The fields of `common` that every request for a result has. */
#define SET_COMMON(body, common)                                              \
    do {                                                                      \
        (body)->accept = (common)->accept;                                    \
        (body)->n_accept = (common)->n_accept;                                \
        (body)->give_back = (common)->gives_back ? &(common)->release : NULL; \
    } while (0)

/* A named key, or a seed. Notes the key for the check of the values. */
static const char *draw_key(uint8_t draw, struct waiting *w, uint64_t *seed)
{
    const unsigned key = draw < 128 ? DAEMON_NO_KEY : draw % DAEMON_KEYS;
    struct values *values = &w->asked.values;
    *seed = key == DAEMON_NO_KEY ? draw % 3 : 0;
    values->order.key = shuf_key_of_seed(*seed);
    w->asked.key = key;
    w->needs_privilege = key == DAEMON_SECRET_KEY;
    if (key != DAEMON_NO_KEY && !daemon_key_bits(key, &values->order.key))
        values->kind = VALUES_UNKNOWN;
    return daemon_key_name(key);
}

#define SET_KEY(body, draw, w) ((body)->key = (char *)(uintptr_t)draw_key(draw, w, &(body)->seed))

static void send_body(struct client *c, Shuf__Request__BodyCase kind, void *body,
                      const struct waiting *w)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = kind;
    request.hello = body; /* one of the pointers of a union */
    client_send(c, &request, w);
}

/* ---- Results --------------------------------------------------------------------------------- */

struct view {
    Shuf__Slice slice;
    Shuf__Shard shard;
};

/* A few values of each row. Ranges that the daemon refuses are rare. */
static void draw_slice(Shuf__Permute *body, struct fuzz_bytes *bytes, Shuf__Slice *slice,
                       struct values *values)
{
    *slice = (Shuf__Slice)SHUF__SLICE__INIT;
    slice->offset = values->offset = fuzz_u8(bytes) * body->n / 256;
    slice->stride = values->stride = 1 + fuzz_u8(bytes) % 7;
    slice->count = values->count = 1 + (body->n - 1 - slice->offset) / slice->stride;
    body->view_case = SHUF__PERMUTE__VIEW_SLICE;
    body->slice = slice;
}

static void draw_shard(Shuf__Permute *body, struct fuzz_bytes *bytes, Shuf__Shard *shard,
                       struct values *values)
{
    const uint8_t draw = fuzz_u8(bytes);
    *shard = (Shuf__Shard)SHUF__SHARD__INIT;
    shard->world = values->stride = 1 + draw % 8;
    shard->rank = draw / 8 % shard->world;
    shard->drop_last = draw & 128;
    shard->step = fuzz_u8(bytes) * (body->n / shard->world) / 255;
    values->offset = (shard->rank + shard->step * shard->world) % body->n;
    values->count = 0; /* the reply tells */
    body->view_case = SHUF__PERMUTE__VIEW_SHARD;
    body->shard = shard;
}

static void draw_view(Shuf__Permute *body, struct fuzz_bytes *bytes, struct view *view,
                      struct values *values)
{
    const uint8_t kind = fuzz_u8(bytes);
    values->count = body->n;
    values->stride = 1;
    if (kind % 4 == 1)
        draw_slice(body, bytes, &view->slice, values);
    else if (kind % 4 == 2)
        draw_shard(body, bytes, &view->shard, values);
}

static void draw_permutation(struct fuzz_bytes *bytes, Shuf__Permute *body, struct view *view,
                             struct waiting *w)
{
    static const uint64_t sizes[] = {1, 10, 500, 1000, 4000, 5000, 20000};
    struct values *values = &w->asked.values;
    const uint8_t kind = fuzz_u8(bytes);
    body->algorithm = algorithms[kind % 4 % ALGORITHMS];
    body->n = sizes[fuzz_u8(bytes) % (sizeof sizes / sizeof *sizes)];
    body->epoch = kind >> 2 & 3;
    body->epochs = kind & 16 ? 2 : 1;
    body->dtype = kind & 32 ? SHUF__DTYPE__DTYPE_U64 : SHUF__DTYPE__DTYPE_U32;
    if (body->algorithm == algorithms[0])
        values->kind = VALUES_PERMUTATION;
    values->width = kind & 32 ? 8 : 4;
    values->order = (struct values_order){.n = body->n, .epoch = body->epoch};
    values->rows = body->epochs;
    SET_KEY(body, fuzz_u8(bytes), w);
    draw_view(body, bytes, view, values);
}

void request_permute(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    struct view view;
    Shuf__Permute body = SHUF__PERMUTE__INIT;
    draw_common(c, bytes, &common, &w);
    draw_permutation(bytes, &body, &view, &w);
    SET_COMMON(&body, &common);
    body.fingerprint = w.fingerprint = common.fingerprint;
    body.fingerprint_index = w.fingerprint_index = common.fingerprint_index;
    body.prefetch = w.prefetch = common.prefetch;
    body.event = common.event;
    send_body(c, SHUF__REQUEST__BODY_PERMUTE, &body, &w);
}

static void draw_gauss(uint8_t kind, Shuf__Stream *body)
{
    body->distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    body->method = kind & 4 ? SHUF__METHOD__METHOD_BOX_MULLER : SHUF__METHOD__METHOD_TABLE;
    body->dtype = SHUF__DTYPE__DTYPE_F64 + (kind >> 3 & 3);
    body->mean = kind >> 5;
    body->std = 1;
}

static void draw_uniform(uint8_t kind, Shuf__Stream *body, struct values *values)
{
    static const Shuf__Dtype dtypes[] = {SHUF__DTYPE__DTYPE_U32, SHUF__DTYPE__DTYPE_U64,
                                         SHUF__DTYPE__DTYPE_F32, SHUF__DTYPE__DTYPE_F64};
    body->distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    body->dtype = dtypes[kind >> 2 & 3];
    values->width = kind & 4 ? 8 : 4;
    values->kind = kind & 8 ? VALUES_UNKNOWN : VALUES_UNIFORM;
}

static void draw_stream(struct fuzz_bytes *bytes, Shuf__Stream *body, struct waiting *w)
{
    const uint8_t kind = fuzz_u8(bytes), place = fuzz_u8(bytes);
    struct values *values = &w->asked.values;
    body->count = values->count = 1 + fuzz_u8(bytes) * UINT64_C(40);
    body->offset = values->offset = place % 4 * UINT64_C(1001);
    body->stream = values->stream = place >> 6;
    body->sums = kind & 2;
    values->rows = 1;
    if (kind & 1)
        draw_gauss(kind, body);
    else
        draw_uniform(kind, body, values);
    SET_KEY(body, fuzz_u8(bytes), w);
}

void request_stream(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Stream body = SHUF__STREAM__INIT;
    draw_common(c, bytes, &common, &w);
    draw_stream(bytes, &body, &w);
    SET_COMMON(&body, &common);
    body.fingerprint = w.fingerprint = common.fingerprint;
    body.fingerprint_index = w.fingerprint_index = common.fingerprint_index;
    body.prefetch = w.prefetch = common.prefetch;
    body.event = common.event;
    send_body(c, SHUF__REQUEST__BODY_STREAM, &body, &w);
}

/* The summary of a result that is larger than a tile. The daemon makes no block for it. */
static bool had_large;

void request_large_summary(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {.is_result = true,
                        .asked.values = {.kind = VALUES_PERMUTATION, .width = 4}};
    Shuf__Permute body = SHUF__PERMUTE__INIT;
    if (had_large || fuzz_u8(bytes) % LARGE_RARE)
        return;
    had_large = true;
    body.algorithm = algorithms[0];
    body.n = w.asked.values.order.n = w.asked.values.count = LARGE;
    w.asked.values.rows = w.asked.values.stride = 1;
    body.fingerprint = true;
    SET_KEY(&body, fuzz_u8(bytes), &w);
    send_body(c, SHUF__REQUEST__BODY_PERMUTE, &body, &w);
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

/* Divides n records among the ranks: evenly, or by the script. */
static void draw_sizes(struct fuzz_bytes *bytes, bool even, uint64_t n, uint64_t world,
                       uint64_t sizes[VALUES_RANKS])
{
    uint64_t left = n;
    for (uint64_t r = 0; r < world; r++) {
        const uint64_t drawn = even ? n / world + (r < n % world) : fuzz_u8(bytes) * n / 255;
        sizes[r] = drawn > left || r == world - 1 ? left : drawn;
        left -= sizes[r];
    }
}

/* One of two parts makes the plan one-sided. */
static void draw_rank(struct fuzz_bytes *bytes, Shuf__Exchange *body, struct values *v)
{
    const uint8_t drawn = fuzz_u8(bytes);
    body->rank = v->rank = drawn % ONE_SIDED % v->world;
    if (drawn < ONE_SIDED)
        return;
    v->kind = VALUES_ONE_SIDED;
    body->part = (1 + drawn % 2) * UINT64_C(65536);
}

static void draw_exchange(struct fuzz_bytes *bytes, Shuf__Exchange *body, struct waiting *w)
{
    const uint8_t kind = fuzz_u8(bytes);
    struct values *v = &w->asked.values;
    *v = (struct values){.kind = VALUES_PLAN, .width = 4, .rows = 1};
    body->n = v->order.n = 1 + fuzz_u8(bytes) * (EXCHANGED_MOST - UINT64_C(1)) / 255;
    body->epoch = v->order.epoch = kind & 1;
    body->inverse = v->order.inverse = kind & 2;
    body->world = v->world = 1 + kind / 4 % VALUES_RANKS;
    draw_rank(bytes, body, v);
    draw_sizes(bytes, !(kind & 64), v->order.n, v->world, v->input);
    memcpy(v->output, v->input, sizeof v->output); /* without sizes they are the same */
    if (kind & 128)
        draw_sizes(bytes, false, v->order.n, v->world, v->output);
    body->input = v->input;
    body->n_input = kind & 64 ? v->world : 0;
    body->output = v->output;
    body->n_output = kind & 128 ? v->world : 0;
    SET_KEY(body, fuzz_u8(bytes), w);
}

void request_exchange(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Exchange body = SHUF__EXCHANGE__INIT;
    draw_common(c, bytes, &common, &w);
    draw_exchange(bytes, &body, &w);
    SET_COMMON(&body, &common);
    body.prefetch = w.prefetch = common.prefetch;
    send_body(c, SHUF__REQUEST__BODY_EXCHANGE, &body, &w);
}

/* ---- Buffers and shuffles -------------------------------------------------------------------- */

void request_allocate(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Allocate body = SHUF__ALLOCATE__INIT;
    draw_common(c, bytes, &common, &w);
    SET_COMMON(&body, &common);
    body.bytes = w.asked.buffer = 1 + fuzz_u8(bytes) * UINT64_C(321);
    send_body(c, SHUF__REQUEST__BODY_ALLOCATE, &body, &w);
}

void request_write(struct fuzz_bytes *bytes)
{
    static uint8_t data[300];
    struct client *c = draw_client(bytes);
    Shuf__Write body = SHUF__WRITE__INIT;
    body.lease = draw_lease(c, bytes);
    body.offset = fuzz_u8(bytes) * UINT64_C(17);
    body.data = (ProtobufCBinaryData){fuzz_u8(bytes) + 1u, data};
    memset(data, 0xa5, sizeof data);
    send_body(c, SHUF__REQUEST__BODY_WRITE, &body, &(struct waiting){0});
}

/* If the input is one row of a permutation, its shuffled values are known. */
static void expect_shuffled(const struct lease *input, const Shuf__Shuffle *body, struct waiting *w)
{
    const struct values_order order = {.n = body->n,
                                       .epoch = body->epoch,
                                       .key = w->asked.values.order.key,
                                       .inverse = body->inverse};
    const bool key_is_known = w->asked.values.kind == VALUES_PERMUTATION;
    w->asked.values.kind = VALUES_UNKNOWN;
    if (!input || !key_is_known || input->values.kind != VALUES_PERMUTATION ||
        input->values.shuffled.n || input->values.rows != 1 ||
        body->record != input->values.width || body->n > input->values.count)
        return;
    w->asked.values = input->values;
    w->asked.values.shuffled = order;
    w->asked.values.count = body->n;
}

static void draw_shuffle(const struct client *c, struct fuzz_bytes *bytes, Shuf__Shuffle *body,
                         struct waiting *w)
{
    const uint8_t kind = fuzz_u8(bytes);
    const struct lease *input = client_lease(c, body->lease = draw_lease(c, bytes));
    body->n = 1 + fuzz_u8(bytes) * UINT64_C(4);
    body->record = 1 + kind % 16;
    if (kind & 64 && input && input->values.count > 0) { /* all values of the input */
        body->n = input->values.count;
        body->record = input->values.width;
    }
    body->algorithm = algorithms[kind & 128 ? kind % ALGORITHMS : 0];
    body->epoch = kind >> 4 & 1;
    body->inverse = kind & 32;
    w->asked.values.kind = body->algorithm == algorithms[0] ? VALUES_PERMUTATION : VALUES_UNKNOWN;
    SET_KEY(body, fuzz_u8(bytes), w);
    expect_shuffled(input, body, w);
}

void request_shuffle(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct common common;
    Shuf__Shuffle body = SHUF__SHUFFLE__INIT;
    draw_common(c, bytes, &common, &w);
    draw_shuffle(c, bytes, &body, &w);
    SET_COMMON(&body, &common);
    body.event = common.event;
    send_body(c, SHUF__REQUEST__BODY_SHUFFLE, &body, &w);
}

/* ---- Requests without a result --------------------------------------------------------------- */

void request_release(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    Shuf__Release body = SHUF__RELEASE__INIT;
    const uint8_t kind = fuzz_u8(bytes);
    uint64_t leases[2], block = 0;
    leases[0] = leases[1] = w.released = draw_lease(c, bytes);
    body.lease = leases;
    body.n_lease = kind % 8 == 0 ? 2 : kind % 8 == 1 ? 0 : 1; /* twice the same fails */
    body.unmapped = &block;
    body.n_unmapped = kind % 2;
    body.everything = w.everything = kind % 8 == 7;
    if (body.n_lease == 0)
        w.released = 0;
    if (body.n_unmapped)
        block = client_unmap_released(c);
    send_body(c, SHUF__REQUEST__BODY_RELEASE, &body, &w);
}

void request_index(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct values *values = &w.asked.values;
    Shuf__Index body = SHUF__INDEX__INIT;
    const uint8_t kind = fuzz_u8(bytes);
    body.algorithm = algorithms[kind % ALGORITHMS];
    body.n = kind & 4 ? 40000 : 100; /* the larger one has a rank index */
    body.inverse = kind & 8;
    body.epoch = kind >> 6;
    body.at = w.at;
    body.n_at = kind >> 4 & 3;
    for (int i = 0; i < CLIENT_LOOK_UPS; i++)
        w.at[i] = fuzz_u8(bytes) * body.n / 256;
    if (body.algorithm == algorithms[0])
        values->kind = VALUES_PERMUTATION;
    values->order =
        (struct values_order){.n = body.n, .epoch = body.epoch, .inverse = body.inverse};
    SET_KEY(&body, fuzz_u8(bytes), &w);
    send_body(c, SHUF__REQUEST__BODY_INDEX, &body, &w);
}

void request_drop(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    Shuf__Drop body = SHUF__DROP__INIT;
    switch (fuzz_u8(bytes) % 4) {
    case 0:
        body.of_case = SHUF__DROP__OF_ALL;
        body.all = w.needs_privilege = true;
        break;
    case 1:
        body.of_case = SHUF__DROP__OF_UID;
        body.uid = draw_client(bytes)->uid;
        w.needs_privilege = body.uid != c->uid;
        break;
    default: /* of the client's user */
        break;
    }
    send_body(c, SHUF__REQUEST__BODY_DROP, &body, &w);
}

void request_status(struct fuzz_bytes *bytes)
{
    Shuf__Status body = SHUF__STATUS__INIT;
    send_body(draw_client(bytes), SHUF__REQUEST__BODY_STATUS, &body, &(struct waiting){0});
}

void request_leases(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    Shuf__Leases body = SHUF__LEASES__INIT;
    body.after = draw_lease(c, bytes);
    send_body(c, SHUF__REQUEST__BODY_LEASES, &body, &(struct waiting){0});
}

void request_metrics(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    Shuf__Metrics body = SHUF__METRICS__INIT;
    body.openmetrics = fuzz_u8(bytes) & 1;
    send_body(c, SHUF__REQUEST__BODY_METRICS, &body, &(struct waiting){0});
}

void request_hello(struct fuzz_bytes *bytes)
{
    static char name[] = "fuzz";
    struct client *c = draw_client(bytes);
    Shuf__Hello body = SHUF__HELLO__INIT;
    if (c->fd >= 0)
        return;
    client_open(c);
    body.version = fuzz_u8(bytes) == 0xff ? 2 : SHUF__PROTOCOL_VERSION;
    body.client = name;
    send_body(c, SHUF__REQUEST__BODY_HELLO, &body, &(struct waiting){0});
}

void requests_reset(void)
{
    had_large = false;
}
