/* SPDX-License-Identifier: MIT
 *
 * Index messages without libshuf: their fields, their order, and the requests whose client leaves
 * or whose daemon stops.
 */
#include "shuf.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/harness.h"
#include "support/wire.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

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

static void check_values(const Shuf__Reply *reply, const struct look_up *l)
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
    check_values(wire_expect(w, SHUF_OK, ""), index);
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
        check_values(reply, &index[i]);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_query_count_is_served),
        cmocka_unit_test(no_positions_are_served),
        cmocka_unit_test(wrong_look_ups_are_refused),
        cmocka_unit_test(replies_keep_request_order),
        cmocka_unit_test(look_ups_beside_an_endless_job),
        cmocka_unit_test(clients_leave_during_look_ups),
        cmocka_unit_test(client_exit_cancels_rank_index_fill),
        cmocka_unit_test(drain_completes_look_ups),
        cmocka_unit_test(second_signal_cancels_look_ups),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
