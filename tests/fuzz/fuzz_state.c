/* SPDX-License-Identifier: MIT
 *
 * The daemon's state machine. The input is a script of steps of four clients of three users, such
 * as requests, closes, reloads and failing allocations. The daemon's modules serve the clients in
 * this process. After each step the counts of the daemon must agree, and the leased values must be
 * right. At the end no allocation may be left.
 */
#include "fuzz.h"
#include "result_message.h"
#include "state/client.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- Requests: each takes the client and its fields from the script ---- */

enum {
    ALGORITHMS = 3,
    EXCHANGED_MOST = 400,
    ONE_SIDED = 128, /* of the byte of the rank */
    LARGE = 2100000, /* values of a summary without a block: more than a tile has */
    LARGE_RARE = 16, /* most of these steps do nothing, because a large summary takes long */
};

static char algorithms[ALGORITHMS][16] = {"primefold", "philox24", "lcg"};

static struct client *draw_client(struct fuzz_bytes *bytes)
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

/* ---- The delivery of a result ---- */

/* The memory that the pointers of a delivery refer to. */
struct delivered {
    Shuf__Transport accept[4];
    Shuf__Release release;
    uint64_t lease;
};

static void draw_transports(uint8_t flags, struct delivered *to, Shuf__Delivery *delivery)
{
    static const struct {
        uint8_t flag;
        Shuf__Transport transport;
    } table[] = {{32, SHUF__TRANSPORT__TRANSPORT_INLINE},
                 {64, SHUF__TRANSPORT__TRANSPORT_MEMFD},
                 {1, SHUF__TRANSPORT__TRANSPORT_CUDA_FD}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if ((flags & 97) != 1 && (flags & table[i].flag)) /* never only device memory */
            to->accept[delivery->n_accept++] = table[i].transport;
    delivery->accept = to->accept;
}

/* Only the fields that results of this kind have. */
static void draw_delivery(const struct client *c, struct fuzz_bytes *bytes,
                          struct shuf__result_message *m, struct delivered *to, struct waiting *w)
{
    const uint8_t flags = fuzz_u8(bytes);
    const unsigned has = shuf__delivery_fields(m->result.what_case);
    Shuf__Delivery *d = &m->delivery;
    d->event = has & SHUF__HAS_EVENT && (flags & 5) == 5;
    d->prefetch = w->prefetch = has & SHUF__HAS_PREFETCH && (flags & 6) == 6;
    d->fingerprint = w->fingerprint = has & SHUF__HAS_FINGERPRINT && flags & 1;
    d->fingerprint_index = w->fingerprint_index = d->fingerprint && flags & 2 ? 77 : 0;
    draw_transports(flags, to, d);
    if ((flags & 24) == 24) {
        to->release = (Shuf__Release)SHUF__RELEASE__INIT;
        to->lease = w->released = draw_lease(c, bytes);
        to->release.n_lease = 1;
        to->release.lease = &to->lease;
        d->give_back = &to->release;
    }
    w->maps = flags & 128;
    w->is_result = true;
}

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

static void send_result(struct client *c, struct shuf__result_message *m, const struct waiting *w)
{
    send_body(c, SHUF__REQUEST__BODY_RESULT, shuf__result_message_link(m), w);
}

/* ---- Results ---- */

/* A few values of each row. Ranges that the daemon refuses are rare. */
static void draw_slice(struct shuf__result_message *m, struct fuzz_bytes *bytes,
                       struct values *values)
{
    const uint64_t n = m->permutation.n;
    shuf__result_message_add_view(m, SHUF__PERMUTE__VIEW_SLICE);
    m->slice.offset = values->offset = fuzz_u8(bytes) * n / 256;
    m->slice.stride = values->stride = 1 + fuzz_u8(bytes) % 7;
    m->slice.count = values->count = 1 + (n - 1 - m->slice.offset) / m->slice.stride;
}

static void draw_shard(struct shuf__result_message *m, struct fuzz_bytes *bytes,
                       struct values *values)
{
    const uint64_t n = m->permutation.n;
    const uint8_t draw = fuzz_u8(bytes);
    shuf__result_message_add_view(m, SHUF__PERMUTE__VIEW_SHARD);
    m->shard.world = values->stride = 1 + draw % 8;
    m->shard.rank = draw / 8 % m->shard.world;
    m->shard.drop_last = draw & 128;
    m->shard.step = fuzz_u8(bytes) * (n / m->shard.world) / 255;
    values->offset = (m->shard.rank + m->shard.step * m->shard.world) % n;
    values->count = 0; /* the reply tells */
}

static void draw_view(struct shuf__result_message *m, struct fuzz_bytes *bytes,
                      struct values *values)
{
    const uint8_t kind = fuzz_u8(bytes);
    values->count = m->permutation.n;
    values->stride = 1;
    if (kind % 4 == 1)
        draw_slice(m, bytes, values);
    else if (kind % 4 == 2)
        draw_shard(m, bytes, values);
}

static void draw_permutation(struct fuzz_bytes *bytes, struct shuf__result_message *m,
                             struct waiting *w)
{
    static const uint64_t sizes[] = {1, 10, 500, 1000, 4000, 5000, 20000};
    struct values *values = &w->asked.values;
    Shuf__Permutation *p = &m->permutation;
    const uint8_t kind = fuzz_u8(bytes);
    p->algorithm = algorithms[kind % 4 % ALGORITHMS];
    p->n = sizes[fuzz_u8(bytes) % (sizeof sizes / sizeof *sizes)];
    p->epoch = kind >> 2 & 3;
    m->permute.epochs = kind & 16 ? 2 : 1;
    m->permute.dtype = kind & 32 ? SHUF__DTYPE__DTYPE_U64 : SHUF__DTYPE__DTYPE_U32;
    if (p->algorithm == algorithms[0])
        values->kind = VALUES_PERMUTATION;
    values->width = kind & 32 ? 8 : 4;
    values->order = (struct values_order){.n = p->n, .epoch = p->epoch};
    values->rows = m->permute.epochs;
    SET_KEY(p, fuzz_u8(bytes), w);
    draw_view(m, bytes, values);
}

static void request_permute(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct delivered delivered;
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_PERMUTE);
    draw_delivery(c, bytes, &m, &delivered, &w);
    draw_permutation(bytes, &m, &w);
    send_result(c, &m, &w);
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

static void draw_stream(struct fuzz_bytes *bytes, struct shuf__result_message *m, struct waiting *w)
{
    Shuf__Stream *body = &m->stream;
    const uint8_t kind = fuzz_u8(bytes), place = fuzz_u8(bytes);
    struct values *values = &w->asked.values;
    body->count = values->count = 1 + fuzz_u8(bytes) * UINT64_C(40);
    body->offset = values->offset = place % 4 * UINT64_C(1001);
    body->stream = values->stream = place >> 6;
    m->delivery.sums = kind & 2;
    values->rows = 1;
    if (kind & 1)
        draw_gauss(kind, body);
    else
        draw_uniform(kind, body, values);
    SET_KEY(body, fuzz_u8(bytes), w);
}

static void request_stream(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct delivered delivered;
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_STREAM);
    draw_delivery(c, bytes, &m, &delivered, &w);
    draw_stream(bytes, &m, &w);
    send_result(c, &m, &w);
}

/* The summary of a result that is larger than a tile. The daemon makes no block for it. */
static bool had_large;

static void request_large_summary(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {.is_result = true,
                        .asked.values = {.kind = VALUES_PERMUTATION, .width = 4}};
    struct shuf__result_message m;
    if (had_large || fuzz_u8(bytes) % LARGE_RARE)
        return;
    had_large = true;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_PERMUTE);
    m.permutation.algorithm = algorithms[0];
    m.permutation.n = w.asked.values.order.n = w.asked.values.count = LARGE;
    w.asked.values.rows = w.asked.values.stride = 1;
    m.delivery.fingerprint = true;
    SET_KEY(&m.permutation, fuzz_u8(bytes), &w);
    send_result(c, &m, &w);
}

/* ---- Exchanges ---- */

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

static void draw_exchange(struct fuzz_bytes *bytes, struct shuf__result_message *m,
                          struct waiting *w)
{
    Shuf__Exchange *body = &m->exchange;
    Shuf__Permutation *p = &m->permutation;
    const uint8_t kind = fuzz_u8(bytes);
    struct values *v = &w->asked.values;
    *v = (struct values){.kind = VALUES_PLAN, .width = 4, .rows = 1};
    p->n = v->order.n = 1 + fuzz_u8(bytes) * (EXCHANGED_MOST - UINT64_C(1)) / 255;
    p->epoch = v->order.epoch = kind & 1;
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
    SET_KEY(p, fuzz_u8(bytes), w);
}

static void request_exchange(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct delivered delivered;
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_EXCHANGE);
    draw_delivery(c, bytes, &m, &delivered, &w);
    draw_exchange(bytes, &m, &w);
    send_result(c, &m, &w);
}

/* ---- Buffers and shuffles ---- */

static void request_buffer(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct delivered delivered;
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_BUFFER);
    draw_delivery(c, bytes, &m, &delivered, &w);
    m.buffer.bytes = w.asked.buffer = 1 + fuzz_u8(bytes) * UINT64_C(321);
    send_result(c, &m, &w);
}

static void request_write(struct fuzz_bytes *bytes)
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
static void expect_shuffled(const struct lease *input, const struct shuf__result_message *m,
                            struct waiting *w)
{
    const struct values_order order = {.n = m->permutation.n,
                                       .epoch = m->permutation.epoch,
                                       .key = w->asked.values.order.key,
                                       .inverse = m->shuffle.inverse};
    const bool key_is_known = w->asked.values.kind == VALUES_PERMUTATION;
    w->asked.values.kind = VALUES_UNKNOWN;
    if (!input || !key_is_known || input->values.kind != VALUES_PERMUTATION ||
        input->values.shuffled.n || input->values.rows != 1 ||
        m->shuffle.record != input->values.width || order.n > input->values.count)
        return;
    w->asked.values = input->values;
    w->asked.values.shuffled = order;
    w->asked.values.count = order.n;
}

static void draw_shuffle(const struct client *c, struct fuzz_bytes *bytes,
                         struct shuf__result_message *m, struct waiting *w)
{
    const uint8_t kind = fuzz_u8(bytes);
    Shuf__Permutation *p = &m->permutation;
    const struct lease *input = client_lease(c, m->shuffle.lease = draw_lease(c, bytes));
    p->n = 1 + fuzz_u8(bytes) * UINT64_C(4);
    m->shuffle.record = 1 + kind % 16;
    if (kind & 64 && input && input->values.count > 0) { /* all values of the input */
        p->n = input->values.count;
        m->shuffle.record = input->values.width;
    }
    p->algorithm = algorithms[kind & 128 ? kind % ALGORITHMS : 0];
    p->epoch = kind >> 4 & 1;
    m->shuffle.inverse = kind & 32;
    w->asked.values.kind = p->algorithm == algorithms[0] ? VALUES_PERMUTATION : VALUES_UNKNOWN;
    SET_KEY(p, fuzz_u8(bytes), w);
    expect_shuffled(input, m, w);
}

static void request_shuffle(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct delivered delivered;
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_SHUFFLE);
    draw_delivery(c, bytes, &m, &delivered, &w);
    draw_shuffle(c, bytes, &m, &w);
    send_result(c, &m, &w);
}

/* ---- Requests without a result ---- */

static void request_release(struct fuzz_bytes *bytes)
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

static void request_index(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    struct waiting w = {0};
    struct values *values = &w.asked.values;
    Shuf__Index body = SHUF__INDEX__INIT;
    Shuf__Permutation p = SHUF__PERMUTATION__INIT;
    const uint8_t kind = fuzz_u8(bytes);
    p.algorithm = algorithms[kind % ALGORITHMS];
    p.n = kind & 4 ? 40000 : 100; /* the larger one has a rank index */
    p.epoch = kind >> 6;
    body.permutation = &p;
    body.inverse = kind & 8;
    body.at = w.at;
    body.n_at = kind >> 4 & 3;
    for (int i = 0; i < CLIENT_LOOK_UPS; i++)
        w.at[i] = fuzz_u8(bytes) * p.n / 256;
    if (p.algorithm == algorithms[0])
        values->kind = VALUES_PERMUTATION;
    values->order = (struct values_order){.n = p.n, .epoch = p.epoch, .inverse = body.inverse};
    SET_KEY(&p, fuzz_u8(bytes), &w);
    send_body(c, SHUF__REQUEST__BODY_INDEX, &body, &w);
}

static void request_drop(struct fuzz_bytes *bytes)
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

static void request_status(struct fuzz_bytes *bytes)
{
    Shuf__Status body = SHUF__STATUS__INIT;
    send_body(draw_client(bytes), SHUF__REQUEST__BODY_STATUS, &body, &(struct waiting){0});
}

static void request_leases(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    Shuf__Leases body = SHUF__LEASES__INIT;
    body.after = draw_lease(c, bytes);
    send_body(c, SHUF__REQUEST__BODY_LEASES, &body, &(struct waiting){0});
}

static void request_metrics(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    Shuf__Metrics body = SHUF__METRICS__INIT;
    body.openmetrics = fuzz_u8(bytes) & 1;
    send_body(c, SHUF__REQUEST__BODY_METRICS, &body, &(struct waiting){0});
}

static void request_hello(struct fuzz_bytes *bytes)
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

static void requests_reset(void)
{
    had_large = false;
}

enum { STEPS = 60, HANGS_S = 20 };

static uint64_t steps_done;

static void print_steps(void)
{
    dprintf(2, "stat::steps: %" PRIu64 "\n", steps_done);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    daemon_open();
    atexit(print_steps);
    return 0;
}

/* ---- The loop ---- */

static void turn(void)
{
    daemon_turn();
    for (int i = 0; i < CLIENTS; i++)
        client_read(&clients[i]);
}

static bool is_quiet(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd >= 0 && clients[i].waits > 0)
            return false;
    return daemon_is_idle();
}

/* Every request is answered. */
static void settle(void)
{
    const time_t end = time(NULL) + HANGS_S;
    for (int quiet = 0; quiet < 3; quiet = is_quiet() ? quiet + 1 : 0) {
        turn();
        if (daemon_computes())
            daemon_wait();
        fuzz_require(time(NULL) < end);
    }
}

/* ---- Steps that are no requests ---- */

static void end_client(struct fuzz_bytes *bytes)
{
    client_close(draw_client(bytes));
}

/* Sends some bytes of the script itself, and closes the client. Skips clients that wait for
 * replies, because those replies would be lost. */
static void send_garbage(struct fuzz_bytes *bytes)
{
    struct client *c = draw_client(bytes);
    const size_t size = fuzz_u8(bytes) % 32, there = size < bytes->left ? size : bytes->left;
    if (c->fd < 0 || c->waits > 0)
        return;
    if (there > 0)
        send(c->fd, bytes->at, there, MSG_NOSIGNAL | MSG_DONTWAIT);
    turn();
    client_close(c);
}

static void refuse_memory(struct fuzz_bytes *bytes)
{
    daemon_refuse_memory(fuzz_u8(bytes) % 4);
}

static void reload(struct fuzz_bytes *bytes)
{
    daemon_reload(fuzz_u8(bytes) % DAEMON_SETTINGS);
    clients_forget_keys();
}

static void unmap_released(struct fuzz_bytes *bytes)
{
    client_unmap_released(draw_client(bytes));
    daemon_sweep();
}

static void pause_loop(struct fuzz_bytes *bytes)
{
    for (int turns = fuzz_u8(bytes) % 4; turns > 0; turns--)
        turn();
}

/* ---- The script ---- */

static void (*const steps[])(struct fuzz_bytes *) = {
    request_permute, request_stream,  request_exchange,      request_shuffle, request_buffer,
    request_write,   request_release, request_index,         request_drop,    request_status,
    request_leases,  request_metrics, request_large_summary, request_permute, request_permute,
    request_permute, request_release, request_hello,         request_hello,   end_client,
    pause_loop,      send_garbage,    refuse_memory,         reload,          reload,
    unmap_released};

enum { STEP_KINDS = sizeof steps / sizeof *steps };

static void start(void)
{
    clients_init();
    requests_reset();
    daemon_reset();
    request_hello(&(struct fuzz_bytes){0});
}

/* Closes all clients. Then checks that nothing is left. */
static void finish(void)
{
    settle();
    for (int i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
    daemon_refuse_memory(0);
    settle();
    daemon_check_empty(settle);
}

/* If the highest bit of a step is set, the next steps run while the daemon still works on it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    start();
    for (int i = 0; i < STEPS && bytes.left > 0; i++) {
        const uint8_t step = fuzz_u8(&bytes);
        steps[(step & 0x7f) % STEP_KINDS](&bytes);
        steps_done++;
        if (step & 0x80)
            continue;
        settle();
        daemon_check();
        clients_check();
    }
    finish();
    return 0;
}
