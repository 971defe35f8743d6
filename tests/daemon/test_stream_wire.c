/* SPDX-License-Identifier: MIT
 *
 * Stream and Index messages without libshuf: their fields, the error of every wrong field, equal
 * requests that share a result, prefetches, transports and leases; requests whose client leaves or
 * whose daemon stops.
 */
#include "shuf.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/draws.h"
#include "support/harness.h"
#include "support/wire.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

enum { N = 5000 };

/* Makes a request for inline values, or for a lease by this transport. */
static struct shuf__result_message gauss_request(uint64_t count, Shuf__Transport transport)
{
    struct shuf__result_message stream = wire_result(SHUF__RESULT__WHAT_STREAM, transport);
    stream.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    stream.stream.seed = 7;
    stream.stream.count = count;
    stream.stream.std = 1;
    return stream;
}

static const Shuf__ResultReply *request_stream(struct wire *w, struct shuf__result_message *stream)
{
    wire_send_result(w, stream);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    assert_int_equal(reply->result->distribution, stream->stream.distribution);
    assert_int_equal(reply->result->method, stream->stream.method);
    assert_string_equal(reply->result->algorithm, "");
    assert_int_equal(reply->result->rows, 1);
    assert_int_equal(reply->result->count, stream->stream.count);
    return reply->result;
}

static struct draw draw_of(const struct shuf__result_message *stream, shuf_dtype dtype, uint64_t i)
{
    return (struct draw){.distribution = stream->stream.method == SHUF__METHOD__METHOD_BOX_MULLER
                                             ? SHUF_DISTRIBUTION_BOX_MULLER
                                             : (enum shuf__distribution)stream->stream.distribution,
                         .dtype = dtype,
                         .seed = stream->stream.seed,
                         .stream = stream->stream.stream,
                         .index = stream->stream.offset + i,
                         .mean = stream->stream.mean,
                         .std = stream->stream.std,
                         .bound = stream->stream.bound};
}

static uint64_t bits_at(const void *values, unsigned width, uint64_t i)
{
    uint64_t bits = 0; /* the value has the low bytes: the machine is little-endian */
    memcpy(&bits, (const char *)values + i * width, width);
    return bits;
}

static void check_values(const struct shuf__result_message *stream, shuf_dtype dtype,
                         const void *values)
{
    for (uint64_t i = 0; i < stream->stream.count; i++) {
        const struct draw draw = draw_of(stream, dtype, i);
        assert_int_equal(bits_at(values, draw_width(dtype), i), draw_bits(&draw));
    }
}

static void request_inline(struct wire *w, struct shuf__result_message *stream, shuf_dtype dtype)
{
    const uint64_t bytes = stream->stream.count * draw_width(dtype);
    const Shuf__ResultReply *reply = request_stream(w, stream);
    assert_int_equal(reply->bytes, bytes);
    assert_int_equal(reply->dtype, stream->stream.dtype);
    assert_int_equal(reply->transport, SHUF__TRANSPORT__TRANSPORT_INLINE);
    assert_null(reply->sums);
    const uint64_t first = reply->first[0], last = reply->last[reply->n_last - 1];
    void *values = malloc(bytes);
    wire_read_payload(w, values, bytes);
    check_values(stream, dtype, values);
    assert_int_equal(first, bits_at(values, draw_width(dtype), 0));
    assert_int_equal(last, bits_at(values, draw_width(dtype), stream->stream.count - 1));
    free(values);
}

static void every_type_matches(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared);
    for (int dtype = 0; dtype < SHUF__DTYPES; dtype++)
        for (int law = 1; law < SHUF_DISTRIBUTION_COUNT; law++) {
            struct shuf__result_message stream =
                gauss_request(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
            if (!shuf__distribution_is_named(law) ||
                !shuf__dtype_is_allowed(dtype, (enum shuf__distribution)law))
                continue;
            stream.stream.distribution = (Shuf__Distribution)law;
            draw_parameters((unsigned)law, 2.5, &stream.stream.mean, &stream.stream.std,
                            &stream.stream.bound);
            stream.stream.stream = UINT64_MAX;
            stream.stream.offset = (UINT64_C(1) << 40) + 1037;
            stream.stream.dtype = (Shuf__Dtype)dtype;
            request_inline(w, &stream, (shuf_dtype)dtype);
            stream.stream.method = SHUF__METHOD__METHOD_BOX_MULLER;
            if (law == SHUF_DISTRIBUTION_GAUSS)
                request_inline(w, &stream, (shuf_dtype)dtype);
        }
    wire_close(w);
}

/* The connection stays open after each error. */
static void wrong_streams_are_refused(void **state)
{
    (void)state;
    struct shuf__result_message rows[13];
    static const char *const words[13] = {
        "distribution 0: expected",
        "count 0: expected at least 1",
        "offset 4611686018427387904",
        "count 2: expected at most 1",
        "mean nan: expected",
        "std 0: expected 2^-100",
        "std -1: expected 2^-100",
        "std inf: expected 2^-100",
        "dtype i64: expected f64, f32, ",
        "std 1: expected 0 with uniform",
        "method 2: expected 0 (table) or 1 (box-muller)",
        "method box-muller: expected none with uniform",
        "bound 5: expected 0 with gauss",
    };
    struct wire *w = wire_greet(&harness_shared);
    for (int i = 0; i < 13; i++)
        rows[i] = gauss_request(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    rows[0].stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_NONE;
    rows[1].stream.count = 0;
    rows[2].stream.offset = UINT64_C(1) << 62;
    rows[3].stream.offset = (UINT64_C(1) << 62) - 1;
    rows[3].stream.count = 2;
    rows[4].stream.mean = (double)NAN;
    rows[5].stream.std = 0;
    rows[6].stream.std = -1;
    rows[7].stream.std = (double)INFINITY;
    rows[8].stream.dtype = SHUF__DTYPE__DTYPE_I64;
    rows[9].stream.distribution = rows[11].stream.distribution =
        SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    rows[10].stream.method = (Shuf__Method)2;
    rows[11].stream.method = SHUF__METHOD__METHOD_BOX_MULLER;
    rows[12].stream.bound = 5;
    for (int i = 0; i < 13; i++) {
        wire_send_result(w, &rows[i]);
        wire_expect(w, SHUF_INVALID, words[i]);
    }
    struct shuf__result_message large =
        gauss_request(UINT64_C(1) << 45, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &large);
    wire_expect(w, SHUF_NO_MEMORY, "");
    wire_check_alive(w);
    wire_close(w);
}

/* Two requests may describe the same stream in different ways. They share a result. Requests that
 * differ in another parameter do not. */
static void equal_streams_share_a_result(void **state)
{
    (void)state;
    const Shuf__Transport own = wire_backend_transport(harness_backend);
    struct wire *w = wire_greet(&harness_shared);
    struct shuf__result_message stream = gauss_request(N, own);
    stream.stream.seed = 1001;
    const Shuf__ResultReply *reply = request_stream(w, &stream);
    const uint64_t block = reply->block;
    assert_false(reply->shared);
    stream.stream.dtype = SHUF__DTYPE__DTYPE_F64; /* the default type, named explicitly */
    stream.stream.mean = -0.0;
    reply = request_stream(w, &stream);
    assert_true(reply->shared && reply->block == block);
    struct shuf__result_message others[9];
    for (int i = 0; i < 9; i++)
        others[i] = stream;
    others[0].stream.seed++;
    others[1].stream.stream++;
    others[2].stream.offset++;
    others[3].stream.count--;
    others[4].stream.mean = 0x1p-100;
    others[5].stream.std = 1 + 0x1p-52;
    others[6].stream.dtype = SHUF__DTYPE__DTYPE_F32;
    others[7].stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    others[7].stream.mean = others[7].stream.std = 0;
    others[8].stream.method = SHUF__METHOD__METHOD_BOX_MULLER;
    for (int i = 0; i < 9; i++) {
        reply = request_stream(w, &others[i]);
        assert_true(!reply->shared && reply->block != block);
    }
    others[7].stream.dtype = SHUF__DTYPE__DTYPE_U64; /* another type of the same width */
    assert_false(request_stream(w, &others[7])->shared);
    others[7].stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_INTEGERS;
    for (int i = 0; i < 2; i++) {
        others[7].stream.bound = UINT64_MAX - (uint64_t)i;
        assert_false(request_stream(w, &others[7])->shared);
    }
    wire_send_release_all(w);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

static double plain_sum(const struct shuf__result_message *stream, const Shuf__Sums *sums,
                        int power)
{
    double sum = 0;
    for (uint64_t i = 0; i < stream->stream.count; i++) {
        const struct draw draw = draw_of(stream, SHUF_F64, i);
        const double x = draw_value(SHUF_F64, draw_bits(&draw));
        sum += pow((x - sums->centre) * sums->scale, power);
    }
    return sum;
}

static void check_sums(const struct shuf__result_message *stream, const Shuf__ResultReply *reply)
{
    const Shuf__Sums *s = reply->sums;
    assert_non_null(s);
    const double got[] = {s->z1, s->z2, s->z3, s->z4};
    for (int power = 1; power <= 4; power++) {
        const double expected = plain_sum(stream, s, power);
        assert_true(fabs(got[power - 1] - expected) < 1e-6);
    }
    assert_true(s->least < s->centre && s->centre < s->largest);
    assert_true(reply->n_first == 4 && reply->n_last == 4);
}

/* The sums use the centre and the scale of the distribution. The daemon also computes them for a
 * cached result. */
static void sums_are_sent_on_request(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared);
    struct shuf__result_message stream = gauss_request(N, wire_backend_transport(harness_backend));
    stream.stream.seed = 2001;
    stream.stream.mean = -3;
    stream.stream.std = 0.25;
    const Shuf__ResultReply *reply = request_stream(w, &stream);
    assert_null(reply->sums);
    assert_int_equal(reply->n_first, 0);
    stream.delivery.sums = true;
    reply = request_stream(w, &stream);
    check_sums(&stream, reply);
    assert_true(reply->shared && reply->fingerprint == 0);
    assert_true(reply->sums->centre == -3 && reply->sums->scale == 4);
    stream.delivery.n_accept = 0;
    stream.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    stream.stream.mean = stream.stream.std = 0;
    stream.delivery.fingerprint = true;
    reply = request_stream(w, &stream);
    check_sums(&stream, reply);
    assert_true(reply->fingerprint != 0 && reply->transport == SHUF__TRANSPORT__TRANSPORT_NONE);
    assert_true(fabs(reply->sums->centre - 0.5) < 1e-15 &&
                fabs(reply->sums->scale - sqrt(12)) < 1e-14);
    wire_send_release_all(w);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

static void prefetched_stream_is_leased(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared);
    struct shuf__result_message stream = gauss_request(N, wire_backend_transport(harness_backend));
    stream.stream.seed = 3001;
    stream.delivery.prefetch = true;
    const Shuf__ResultReply *reply = request_stream(w, &stream);
    assert_int_equal(reply->transport, SHUF__TRANSPORT__TRANSPORT_NONE);
    assert_true(reply->lease != 0 && reply->block == 0);
    stream.delivery.prefetch = false;
    reply = request_stream(w, &stream);
    assert_true(reply->shared && reply->lease != 0);
    wire_release(w, reply->lease, 0);
    wire_close(w);
}

/* Takes leases of a stream and of a permutation, and exchanges them in one round trip. */
static void stream_leases_are_listed_and_exchanged(void **state)
{
    (void)state;
    const Shuf__Transport own = wire_backend_transport(harness_backend);
    struct wire *w = wire_greet(&harness_shared);
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    const Shuf__ResultReply *reply = wire_lease(w, 1000, 5, own);
    uint64_t first = reply->lease;
    struct shuf__result_message stream = gauss_request(N, own);
    Shuf__Release release = SHUF__RELEASE__INIT;
    release.lease = &first;
    release.n_lease = 1;
    stream.stream.stream = 77;
    stream.stream.offset = 88;
    stream.stream.mean = 0.1;
    stream.stream.std = 0.3;
    stream.stream.dtype = SHUF__DTYPE__DTYPE_BF16;
    stream.stream.method = SHUF__METHOD__METHOD_BOX_MULLER;
    stream.delivery.give_back = &release;
    request_stream(w, &stream);
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    wire_send(w, &request);
    const Shuf__LeasesReply *page = wire_expect(w, SHUF_OK, "")->leases;
    assert_int_equal(page->n_lease, 1);
    const Shuf__LeaseEntry *entry = page->lease[0];
    assert_true(entry->rows == 1 && entry->count == N);
    assert_int_equal(entry->request->what_case, SHUF__RESULT__WHAT_STREAM);
    const Shuf__Stream *asked = entry->request->stream;
    assert_int_equal(asked->distribution, SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS);
    assert_int_equal(asked->method, SHUF__METHOD__METHOD_BOX_MULLER);
    assert_true(asked->seed == 7 && asked->stream == 77 && asked->offset == 88);
    assert_int_equal(asked->count, N);
    assert_int_equal(asked->dtype, SHUF__DTYPE__DTYPE_BF16);
    assert_true(asked->mean == 0.1 && asked->std == 0.3);
    wire_send_result(w, &stream); /* the request releases a lease that has ended */
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    wire_send_release_all(w);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

static void streams_are_counted(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared);
    const Shuf__StatusReply before = wire_status(&harness_shared);
    struct shuf__result_message stream = gauss_request(N, SHUF__TRANSPORT__TRANSPORT_NONE);
    stream.stream.seed = 4001;
    request_stream(w, &stream);
    request_stream(w, &stream);
    const Shuf__StatusReply after = wire_status(&harness_shared);
    assert_int_equal(after.served, before.served + 2);
    assert_int_equal(after.computed, before.computed + 1);
    assert_int_equal(after.hits, before.hits + 1);
    wire_close(w);
}

/* ---- Index messages ---- */

#define BIT(k) (UINT64_C(1) << (k))

enum { MOST = SHUF_LOOKUPS };

struct look_up {
    Shuf__Index index;
    Shuf__Permutation permutation;
};

static struct look_up look_up_message(uint64_t n, uint64_t *at, size_t count)
{
    struct look_up l = {.index = SHUF__INDEX__INIT, .permutation = SHUF__PERMUTATION__INIT};
    l.permutation.n = n;
    l.permutation.seed = 7;
    l.index.at = at;
    l.index.n_at = count;
    return l;
}

static void send_index(struct wire *w, struct look_up *l)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    l->index.permutation = &l->permutation;
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &l->index;
    wire_send(w, &request);
}

static void check_values_index(const Shuf__Reply *reply, const struct look_up *l)
{
    const Shuf__Index *index = &l->index;
    const shuf_primefold f =
        shuf_primefold_make(l->permutation.n, l->permutation.seed, l->permutation.epoch);
    assert_int_equal(reply->status, SHUF_OK);
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_INDEX);
    assert_string_equal(reply->index->algorithm, "primefold");
    assert_int_equal(reply->payload_bytes, 0);
    assert_int_equal(reply->index->n_value, index->n_at);
    for (size_t i = 0; i < index->n_at; i++)
        assert_int_equal(reply->index->value[i], shuf_primefold_forward(&f, index->at[i]));
}

static void expect_values(struct wire *w, const struct look_up *index)
{
    check_values_index(wire_expect(w, SHUF_OK, ""), index);
}

static void every_query_count_is_served(void **state)
{
    (void)state;
    static uint64_t at[MOST];
    struct wire *w = wire_greet(&harness_shared);
    for (size_t i = 0; i < MOST; i++)
        at[i] = BIT(62) - 1 - i;
    static const size_t counts[] = {0, 1, 1024, 1025, MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct look_up index = look_up_message(BIT(62), at, counts[i]);
        index.permutation.seed = index.permutation.epoch = UINT64_MAX;
        send_index(w, &index);
        assert_int_equal(w->id, i + 2);
        expect_values(w, &index);
    }
    wire_close(w);
}

/* With 0 positions, a message has no array of them. A look-up in philox24 or lcg is a job even
 * then. */
static void no_positions_are_served(void **state)
{
    static const char *const algorithms[] = {"primefold", "philox24", "lcg"};
    static const uint64_t sizes[] = {1, 1000, BIT(20), BIT(20) + 1};
    struct wire *w = wire_greet(&harness_shared);
    (void)state;
    for (size_t i = 0; i < 3 * 4 * 2; i++) {
        struct look_up index = look_up_message(sizes[i / 2 % 4], NULL, 0);
        index.permutation.algorithm = (char *)(uintptr_t)algorithms[i / 8];
        index.index.inverse = i % 2;
        send_index(w, &index);
        const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
        assert_int_equal(reply->body_case, SHUF__REPLY__BODY_INDEX);
        assert_string_equal(reply->index->algorithm, algorithms[i / 8]);
        assert_int_equal(reply->index->n_value, 0);
    }
    wire_close(w);
}

static void wrong_look_ups_are_refused(void **state)
{
    (void)state;
    static uint64_t at[MOST + 100];
    struct wire *w = wire_greet(&harness_shared);
    struct look_up index = look_up_message(10, at, MOST + 1);
    send_index(w, &index);
    wire_expect(w, SHUF_INVALID, "at: 8001 positions, expected at most 8000 in one request");
    index.index.n_at = 3;
    at[2] = 10;
    send_index(w, &index);
    wire_expect(w, SHUF_INVALID, "at[2] 10: expected less than n = 10");
    index.index.inverse = true;
    at[2] = UINT64_MAX;
    send_index(w, &index);
    wire_expect(w, SHUF_INVALID, "at[2] 18446744073709551615: expected less than n = 10");
    index.permutation.n = 0;
    send_index(w, &index);
    wire_expect(w, SHUF_INVALID, "n 0: expected 1 to 2^62");
    index.permutation.n = BIT(62) + 1;
    send_index(w, &index);
    wire_expect(w, SHUF_INVALID, "n 4611686018427387905: expected 1 to 2^62");
    index.permutation.algorithm = (char *)"\033[2J";
    send_index(w, &index);
    wire_expect(w, SHUF_INVALID, "algorithm \"?[2J\": expected primefold, philox24 or lcg");
    wire_check_alive(w);
    wire_close(w);
}

/* Replies come in the order of the requests, whichever thread computes them. */
static void replies_keep_request_order(void **state)
{
    (void)state;
    enum { ROUNDS = 12 };
    static uint64_t at[MOST];
    struct wire *w = wire_greet(&harness_shared);
    struct look_up index[ROUNDS];
    for (size_t i = 0; i < MOST; i++)
        at[i] = i;
    const uint64_t first = w->id + 1;
    for (size_t i = 0; i < ROUNDS; i++) {
        index[i] = look_up_message(BIT(40) + i, at + i, i % 3 == 0 ? 1 : 4000 + 100 * i);
        send_index(w, &index[i]);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        const Shuf__Reply *reply = wire_receive(w);
        assert_int_equal(reply->id, first + i);
        check_values_index(reply, &index[i]);
    }
    wire_close(w);
}

/* A job that never ends blocks the engine. Few look-ups are still served at once, of windowed
 * orders only one. Many wait in the queue until their client leaves. */
static void look_ups_beside_an_endless_job(void **state)
{
    (void)state;
    static uint64_t at[MOST];
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    endless.permutation.algorithm = (char *)"philox24"; /* has to count values to find a position */
    struct look_up few = look_up_message(1000, at, 1024), many = look_up_message(1000, at, MOST);
    struct look_up windowed = look_up_message(1000, at, 2);
    windowed.permutation.chunk = windowed.permutation.window = 2;
    wire_start(&h, harness_backend, "queue = 1\n");
    struct wire *busy = wire_greet(&h), *waiting = wire_greet(&h), *w = wire_greet(&h);
    wire_send_result(busy, &endless);
    wire_await_queued(&h, 1);
    send_index(waiting, &many);
    wire_await_queued(&h, 2);
    send_index(w, &many);
    wire_expect(w, SHUF_BUSY, "queue 1: the most jobs of a user that may wait");
    send_index(w, &windowed);
    wire_expect(w, SHUF_BUSY, "queue 1: the most jobs of a user that may wait");
    windowed.index.n_at = 1;
    send_index(w, &windowed);
    wire_expect(w, SHUF_OK, "");
    send_index(w, &few);
    expect_values(w, &few);
    wire_close(waiting);
    wire_await_queued(&h, 1);
    send_index(w, &many);
    wire_await_queued(&h, 2);
    wire_close(busy);
    expect_values(w, &many);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* Clients that close the connection at any time during a request. */
static void clients_leave_during_look_ups(void **state)
{
    (void)state;
    static uint64_t at[MOST];
    struct look_up index = look_up_message(50, at, MOST); /* the slowest size */
    for (int i = 0; i < 100; i++) {
        struct wire *w = wire_greet(&harness_shared);
        send_index(w, &index);
        send_index(w, &index);
        wire_close(w);
    }
    WIRE_AWAIT(&harness_shared, s, s.clients == 1 && s.queued == 0);
    struct wire *w = wire_greet(&harness_shared);
    send_index(w, &index);
    expect_values(w, &index);
    wire_close(w);
}

/* The count for the rank index takes minutes unless the client leaves. Other requests for the same
 * permutation have correct results, although the rank index is incomplete. */
static void client_exit_cancels_rank_index_fill(void **state)
{
    (void)state;
    uint64_t at[2] = {BIT(35), 0};
    struct look_up late = look_up_message(BIT(35) + 1, at, 2);
    late.permutation.algorithm = (char *)"philox24";
    const shuf_philox24 f = shuf_philox24_make(BIT(35) + 1, 7, 0);
    uint64_t x = 0;
    while (shuf_philox24_forward(&f, x) >= BIT(35) + 1)
        x++;
    for (int i = 0; i < 3; i++) {
        struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
        send_index(w, &late);
        wire_await_queued(&harness_shared, 1);
        wire_close(w);
        WIRE_AWAIT(&harness_shared, s, s.queued == 0);
        struct look_up first = late;
        first.index.at = at + 1;
        first.index.n_at = 1;
        send_index(other, &first);
        const Shuf__Reply *reply = wire_expect(other, SHUF_OK, "");
        assert_string_equal(reply->index->algorithm, "philox24");
        assert_int_equal(reply->index->value[0], shuf_philox24_forward(&f, x));
        wire_close(other);
    }
}

/* A stopping daemon replies to accepted requests completely, however many queries they have. */
static void drain_completes_look_ups(void **state)
{
    (void)state;
    static uint64_t at[MOST];
    struct harness h;
    struct look_up index = look_up_message(50, at, MOST); /* the slowest size */
    wire_start(&h, harness_backend, "");
    struct wire *clients[20];
    for (int i = 0; i < 20; i++) {
        clients[i] = wire_greet(&h);
        send_index(clients[i], &index);
    }
    WIRE_AWAIT(&h, s, s.clients == 21);
    kill(h.pid, SIGTERM);
    for (int i = 0; i < 20; i++) {
        expect_values(clients[i], &index);
        wire_expect_end(clients[i]);
        wire_close(clients[i]);
    }
    assert_int_equal(harness_kill(&h, 0), 0);
    assert_true(harness_stop(&h));
}

/* The second signal cancels a request that would take minutes. */
static void second_signal_cancels_look_ups(void **state)
{
    (void)state;
    struct harness h;
    static uint64_t at[MOST];
    struct look_up late = look_up_message(BIT(36) - 1, at, MOST);
    late.permutation.algorithm = (char *)"lcg";
    late.index.inverse = true;
    for (size_t i = 0; i < MOST; i++)
        at[i] = i;
    wire_start(&h, harness_backend, "drain_timeout = 1h\n");
    struct wire *w = wire_greet(&h);
    send_index(w, &late);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    int status = harness_kill(&h, SIGTERM);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_TEMPFAIL);
    wire_expect_end(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- A rank index in a reused block ---- */

enum { INDEXED_N = 2200000, INDEX_WORDS = 258 }; /* the words of its rank index, 2^22 / 2^14 + 2 */

/* Leaves `rest_bytes` to 1 MiB more of the memory. */
static void fill_memory(struct wire *w, uint64_t rest_bytes)
{
    const Shuf__Transport inlined = SHUF__TRANSPORT__TRANSPORT_INLINE;
    uint64_t rest = wire_allocate(w, rest_bytes, inlined).lease;
    for (uint64_t bytes = 16 << 20; bytes >= 1 << 20;) {
        wire_send_allocate(w, bytes, inlined);
        if (wire_receive(w)->status != SHUF_OK)
            bytes /= 2;
    }
    wire_send_release(w, &rest, 1, NULL, 0);
    wire_expect(w, SHUF_OK, "");
}

/* The result of this shuffle is a block of the same size as the rank index. No request finds the
 * result again, so its block is the first to be reused. */
static void leave_block(struct wire *w, uint64_t word)
{
    uint64_t words[INDEX_WORDS], payload[INDEX_WORDS];
    for (int i = 0; i < INDEX_WORDS; i++)
        words[i] = word;
    const uint64_t lease = wire_allocate(w, sizeof words, SHUF__TRANSPORT__TRANSPORT_INLINE).lease;
    wire_send_write(w, lease, 0, words, sizeof words);
    wire_expect(w, SHUF_OK, "");
    struct shuf__result_message shuffle =
        wire_shuffle_of(lease, 1, sizeof words, SHUF__TRANSPORT__TRANSPORT_INLINE);
    assert_int_equal(wire_shuffle(w, &shuffle)->status, SHUF_OK);
    wire_read_payload(w, payload, sizeof payload);
    assert_memory_equal(payload, words, sizeof words);
}

/* Value number `position` of philox24, from all values before it. */
static uint64_t philox24_at(uint64_t position)
{
    const shuf_philox24 f = shuf_philox24_make(INDEXED_N, 7, 0);
    for (uint64_t x = 0;; x++) {
        const uint64_t y = shuf_philox24_forward(&f, x);
        if (y < INDEXED_N && position-- == 0)
            return y;
    }
}

static void expect_indexed_values(struct wire *w)
{
    uint64_t at[] = {0, INDEXED_N / 2, INDEXED_N - 1};
    struct look_up index = look_up_message(INDEXED_N, at, 3);
    index.permutation.algorithm = (char *)(uintptr_t) "philox24";
    send_index(w, &index);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(reply->index->value[i], philox24_at(at[i]));
}

/* The summary acquires its rank index, and then fails, because its other memory has no room. */
static void rank_index_has_none_of_the_old_contents_of_its_block(void **state)
{
    struct harness h;
    const bool is_cuda = harness_is_cuda();
    (void)state;
    for (uint64_t word = 1; word < INDEX_WORDS; word += 64) {
        wire_start(&h, harness_backend, "host_memory = 16Mi\nuser_memory = 100%\n");
        struct wire *w = wire_greet(&h);
        struct shuf__result_message summary =
            wire_permutation(INDEXED_N, SHUF__TRANSPORT__TRANSPORT_NONE);
        summary.permutation.algorithm = (char *)(uintptr_t) "philox24";
        summary.delivery.fingerprint = true;
        fill_memory(w, is_cuda ? 4 << 20 : 64 << 10); /* two blocks of the least size */
        leave_block(w, word);
        wire_send_result(w, &summary);
        const shuf_status status = (shuf_status)wire_receive(w)->status;
        if (!is_cuda) /* a GPU has memory of its own for the values */
            assert_int_equal(status, SHUF_BUSY);
        wire_send_release_all(w);
        wire_expect(w, SHUF_OK, "");
        expect_indexed_values(w);
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_matches),
        cmocka_unit_test(wrong_streams_are_refused),
        cmocka_unit_test(equal_streams_share_a_result),
        cmocka_unit_test(sums_are_sent_on_request),
        cmocka_unit_test(prefetched_stream_is_leased),
        cmocka_unit_test(stream_leases_are_listed_and_exchanged),
        cmocka_unit_test(streams_are_counted),
        cmocka_unit_test(every_query_count_is_served),
        cmocka_unit_test(no_positions_are_served),
        cmocka_unit_test(wrong_look_ups_are_refused),
        cmocka_unit_test(replies_keep_request_order),
        cmocka_unit_test(look_ups_beside_an_endless_job),
        cmocka_unit_test(clients_leave_during_look_ups),
        cmocka_unit_test(client_exit_cancels_rank_index_fill),
        cmocka_unit_test(drain_completes_look_ups),
        cmocka_unit_test(second_signal_cancels_look_ups),
        cmocka_unit_test(rank_index_has_none_of_the_old_contents_of_its_block),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
