/* SPDX-License-Identifier: MIT
 *
 * A real shufd with correct, faulty and hostile clients. Each client gets a status and a line with
 * the reason. The other clients are not disturbed.
 */
#include "support/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The daemon of all tests that need no settings of their own. */
/* ---- Messages ---- */

static void test_handshake(void **state)
{
    (void)state;
    struct wire *w = wire_open(&harness_shared);
    wire_send_hello(w, SHUF__PROTOCOL_VERSION);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_HELLO);
    assert_int_equal(reply->hello->version, SHUF__PROTOCOL_VERSION);
    assert_memory_equal(reply->hello->daemon, "shufd ", 6);
    assert_memory_equal(reply->hello->backend, harness_backend, strlen(reply->hello->backend));
    assert_true(*reply->hello->device);
    wire_check_alive(w);
    wire_close(w);
}

static void test_wrong_version(void **state)
{
    (void)state;
    struct wire *w = wire_open(&harness_shared);
    wire_send_hello(w, 9);
    const Shuf__Reply *reply = wire_expect(w, SHUF_VERSION, "protocol version 9: expected 1");
    assert_int_equal(reply->id, w->id);
    assert_int_equal(reply->hello->version, SHUF__PROTOCOL_VERSION);
    wire_expect_end(w);
    wire_close(w);
}

static void test_hello_comes_first_and_once(void **state)
{
    (void)state;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_open(&harness_shared);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_PROTOCOL, "expected hello");
    wire_expect_end(w);
    wire_close(w);
    w = wire_greet(&harness_shared);
    wire_send_hello(w, SHUF__PROTOCOL_VERSION);
    wire_expect(w, SHUF_PROTOCOL, "hello: expected once");
    wire_expect_end(w);
    wire_close(w);
}

static void expect_refused(bool greet, const void *bytes, size_t size, const char *text)
{
    struct wire *w = greet ? wire_greet(&harness_shared) : wire_open(&harness_shared);
    wire_send_bytes(w, bytes, size);
    wire_expect(w, SHUF_PROTOCOL, text);
    wire_expect_end(w);
    wire_close(w);
}

static void test_garbage_is_refused(void **state)
{
    (void)state;
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const uint8_t noise[] = {8, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255};
    static const uint8_t one[] = {1, 0, 0, 0, 255};
    static const uint8_t empty[] = {0, 0, 0, 0, 1, 2, 3};
    static const uint8_t large[] = {1, 0, 1, 0};
    static const uint8_t unknown[] = {4, 0, 0, 0, 0x08, 0x01, 0x7a, 0x00}; /* field 15 */
    static const uint8_t no_body[] = {2, 0, 0, 0, 0x08, 0x05};
    static uint8_t flood[1 << 20];
    memset(flood, 0xa5, sizeof flood);
    for (int greet = 0; greet < 2; greet++) {
        expect_refused(greet, http, sizeof http - 1, "frame length 542393671: expected 1 to 65536");
        expect_refused(greet, noise, sizeof noise, "frame of 8 bytes: expected a request");
        expect_refused(greet, one, sizeof one, "frame of 1 byte: expected a request");
        expect_refused(greet, empty, sizeof empty, "frame length 0: expected");
        expect_refused(greet, large, sizeof large, "frame length 65537: expected");
        expect_refused(greet, unknown, sizeof unknown, "request: unknown kind");
        expect_refused(greet, no_body, sizeof no_body, "request: unknown kind");
        expect_refused(greet, flood, sizeof flood, "frame length 2779096485");
    }
}

/* Each field of this frame is valid, but the unpacked message would be very large. */
static void test_large_unpacked_frame_is_refused(void **state)
{
    (void)state;
    static uint8_t frame[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
    size_t used = SHUF__FRAME_HEADER;
    while (used + 2 <= sizeof frame) {
        frame[used++] = 0x22; /* another Status; protobuf merges it with the ones before */
        frame[used++] = 0x00;
    }
    shuf__frame_header(frame, used - SHUF__FRAME_HEADER);
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    wire_send_bytes(w, frame, used);
    const Shuf__Reply *reply = wire_receive(w);
    assert_true(reply->status == SHUF_OK || reply->status == SHUF_PROTOCOL);
    wire_check_alive(other);
    wire_close(w);
    wire_close(other);
}

static void test_frame_sent_byte_by_byte(void **state)
{
    (void)state;
    uint8_t frame[256];
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_greet(&harness_shared);
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(&permute);
    size_t size = wire_pack(w, &request, frame, sizeof frame);
    for (size_t i = 0; i < size; i++) {
        wire_send_bytes(w, frame + i, 1);
        usleep(500);
    }
    assert_int_equal(wire_expect(w, SHUF_OK, "")->result->count, 10);
    wire_close(w);
}

static void test_pipelined_requests_are_served(void **state)
{
    (void)state;
    enum { REQUESTS = 200 };
    static uint8_t bytes[REQUESTS * 64];
    size_t used = 0;
    struct wire *w = wire_greet(&harness_shared);
    for (uint64_t i = 1; i <= REQUESTS; i++) {
        Shuf__Request request = SHUF__REQUEST__INIT;
        struct shuf__result_message permute =
            wire_permutation(i, SHUF__TRANSPORT__TRANSPORT_INLINE);
        Shuf__Status status = SHUF__STATUS__INIT;
        if (i % 3) {
            request.body_case = SHUF__REQUEST__BODY_RESULT;
            request.result = shuf__result_message_link(&permute);
        } else {
            request.body_case = SHUF__REQUEST__BODY_STATUS;
            request.status = &status;
        }
        used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    }
    wire_send_bytes(w, bytes, used);
    for (uint64_t i = 1; i <= REQUESTS; i++) {
        uint32_t values[REQUESTS];
        w->id = i + 1; /* the Hello had id 1 */
        const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
        assert_int_equal(reply->payload_bytes, i % 3 ? 4 * i : 0);
        wire_read_payload(w, values, reply->payload_bytes);
    }
    wire_check_alive(w);
    wire_close(w);
}

static void test_status(void **state)
{
    (void)state;
    Shuf__StatusReply before = wire_status(&harness_shared);
    struct wire *w = wire_greet(&harness_shared);
    wire_check_alive(w);
    Shuf__StatusReply after = wire_status(&harness_shared);
    assert_int_equal(before.pid, harness_shared.pid);
    assert_int_equal(after.served, before.served + 1);
    assert_true(after.clients >= 2); /* connections that have just closed may still count */
    assert_int_equal(after.queued, 0);
    assert_int_equal(after.queue_limit, 1024);
    assert_true(after.memory_limit > 0);
    assert_true(after.uptime_ms >= before.uptime_ms);
    wire_close(w);
}

static void test_summary(void **state)
{
    (void)state;
    static const uint64_t first[] = {5, 9, 8, 0}, last[] = {2, 4, 3, 7};
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_greet(&harness_shared);
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_string_equal(reply->result->algorithm, "primefold"); /* the default algorithm */
    permute.permutation.algorithm = (char *)"philox24";
    wire_send_result(w, &permute);
    reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->payload_bytes, 0);
    assert_string_equal(reply->result->algorithm, "philox24");
    assert_int_equal(reply->result->dtype, SHUF__DTYPE__DTYPE_U32);
    assert_int_equal(reply->result->bytes, 40);
    assert_int_equal(reply->result->fingerprint, 0);
    assert_int_equal(reply->result->n_first, 4);
    assert_int_equal(reply->result->n_last, 4);
    assert_memory_equal(reply->result->first, first, sizeof first);
    assert_memory_equal(reply->result->last, last, sizeof last);

    permute.permutation.n = 5; /* five values, so the first ones and the last ones do not overlap */
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->result->n_first, 4);
    assert_int_equal(reply->result->n_last, 1);
    assert_int_not_equal(reply->result->fingerprint, 0);
    wire_close(w);
}

/* If world > n and drop_last is set, a shard has no values. This holds for any number of epochs. */
static void test_empty_shard(void **state)
{
    (void)state;
    struct shuf__result_message permute = wire_permutation(3, SHUF__TRANSPORT__TRANSPORT_INLINE);
    shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SHARD);
    permute.shard.world = 4;
    permute.shard.drop_last = true;
    permute.permute.epochs = UINT64_C(1) << 60;
    permute.delivery.fingerprint = true;
    struct wire *w = wire_greet(&harness_shared);
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->result->count, 0);
    assert_int_equal(reply->result->n_first + reply->result->n_last, 0);
    assert_int_equal(reply->payload_bytes, 0);
    wire_check_alive(w);
    wire_close(w);
}

/* ---- Bad requests ---- */

static void test_bad_permutes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        uint64_t n, epochs;
        int dtype, transport;
        shuf_status status;
        const char *text;
    } rows[] = {
        {"", 0, 0, 0, 0, SHUF_INVALID, "n 0: expected 1 to 2^62"},
        {"", (UINT64_C(1) << 62) + 1, 0, 0, 0, SHUF_INVALID, "n 4611686018427387905: expected"},
        {"foo", 10, 0, 0, 0, SHUF_INVALID,
         "algorithm \"foo\": expected primefold, philox24 or lcg"},
        {"a\nb\x1b[2J", 10, 0, 0, 0, SHUF_INVALID, "algorithm \"a?b?[2J\": expected"},
        {"", (UINT64_C(1) << 32) + 1, 0, 1, 0, SHUF_INVALID,
         "dtype u32: too small for n = 4294967297"},
        {"", 10, 0, 17, 0, SHUF_INVALID, "dtype 17: expected u32, u64 or i64"},
        {"", 10, 0, 0, 99, SHUF_INVALID, "transport (unknown): the backend "},
        {"", 1000000000, 1000000, 2, 1, SHUF_NO_MEMORY, "needs 7.11 PiB of "},
        {"", 1000000000, UINT64_C(1) << 62, 2, 1, SHUF_NO_MEMORY, "pass 2^63 bytes"},
        {"", UINT64_C(1) << 62, 0, 0, 0, SHUF_NO_MEMORY, "pass 2^63 bytes"},
    };
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct shuf__result_message permute =
            wire_permutation(rows[i].n, (Shuf__Transport)rows[i].transport);
        permute.permutation.algorithm = (char *)(uintptr_t)rows[i].algorithm;
        permute.permute.epochs = rows[i].epochs;
        permute.permute.dtype = (Shuf__Dtype)rows[i].dtype;
        wire_send_result(w, &permute);
        const Shuf__Reply *reply = wire_expect(w, rows[i].status, rows[i].text);
        assert_int_equal(reply->id, w->id);
        assert_int_equal(reply->payload_bytes, 0);
        wire_check_alive(other);
        wire_check_alive(w); /* a bad request does not end its connection */
    }
    wire_close(w);
    wire_close(other);
}

static void test_bad_views_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, count, stride;
        const char *text;
    } rows[] = {
        {10, 1, 1, "offset 10: expected less than n = 10"},
        {0, 0, 1, "count 0: expected at least 1"},
        {0, 1, 0, "stride 0: expected at least 1"},
        {5, 6, 1, "count 6: expected at most 5"},
        {1, UINT64_MAX, UINT64_MAX, "count 18446744073709551615: expected at most 1"},
    };
    struct wire *w = wire_greet(&harness_shared);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct shuf__result_message permute =
            wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_INLINE);
        shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SLICE);
        permute.slice.offset = rows[i].offset;
        permute.slice.count = rows[i].count;
        permute.slice.stride = rows[i].stride;
        wire_send_result(w, &permute);
        wire_expect(w, SHUF_INVALID, rows[i].text);
    }
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_INLINE);
    shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SHARD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_INVALID, "world 0: expected 1 to 2^62");
    permute.shard.rank = permute.shard.world = 3;
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_INVALID, "rank 3: expected less than world = 3");
    wire_close(w);
}

/* ---- Clients that leave, wait or are many ---- */

static void test_client_leaves_during_computation(void **state)
{
    (void)state;
    struct shuf__result_message endless = wire_endless_permutation();
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    wire_send_result(w, &endless);
    wire_await_queued(&harness_shared, 1);
    wire_close(w);
    wire_check_alive(other);
    wire_close(other);
}

static void test_client_leaves_in_the_queue(void **state)
{
    (void)state;
    struct shuf__result_message endless = wire_endless_permutation();
    struct wire *a = wire_greet(&harness_shared), *b = wire_greet(&harness_shared),
                *c = wire_greet(&harness_shared);
    endless.permutation.seed++;
    wire_send_result(a, &endless);
    wire_await_queued(&harness_shared, 1);
    endless.permutation.seed++; /* a different request, so another job */
    wire_send_result(b, &endless);
    wire_await_queued(&harness_shared, 2);
    wire_close(b);
    wire_close(a);
    wire_check_alive(c);
    wire_close(c);
}

static void test_client_leaves_during_payload(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    struct shuf__result_message permute =
        wire_permutation(8 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_read_payload(w, bytes, sizeof bytes);
    assert_true(wire_status(&harness_shared).memory_used >= 32 << 20);
    wire_close(w);
    wire_check_alive(other);
    wire_close(other);
    wire_await_memory_free(&harness_shared);
}

/* A client that shuts down its writing side counts as gone. */
static void test_half_close_ends_connection(void **state)
{
    (void)state;
    struct shuf__result_message endless = wire_endless_permutation();
    struct wire *w = wire_greet(&harness_shared);
    wire_send_result(w, &endless);
    wire_await_queued(&harness_shared, 1);
    shutdown(w->fd, SHUT_WR);
    wire_expect_end(w);
    wire_close(w);
    wire_await_queued(&harness_shared, 0);
}

static void test_unread_results(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, harness_backend, NULL));
    wire_check_unread_results(&h, strncmp(harness_backend, "cpu", 3) == 0);
    assert_true(harness_stop(&h));
}

static void test_queue_full(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    wire_start(&h, harness_backend, "queue = 1\n");
    struct wire *a = wire_greet(&h), *b = wire_greet(&h), *c = wire_greet(&h);
    endless.permutation.seed++;
    wire_send_result(a, &endless);
    wire_await_queued(&h, 1);
    endless.permutation.seed++; /* a different request, so another job */
    wire_send_result(b, &endless);
    wire_await_queued(&h, 2);
    endless.permutation.seed++;
    wire_send_result(c, &endless);
    wire_expect(c, SHUF_BUSY, "queue 1: the most jobs of a user that may wait");
    wire_close(a);
    wire_close(b);
    wire_await_queued(&h, 0);
    wire_check_alive(c);
    wire_close(c);
    assert_true(harness_stop(&h));
}

/* A client leaves while its job waits in the queue. Its place is free at once, even if another job
 * runs. */
static void test_queue_place_of_lost_client_is_free(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation(),
                                small = wire_permutation(10, 0);
    wire_start(&h, harness_backend, "queue = 2\n");
    struct wire *running = wire_greet(&h), *last = wire_greet(&h);
    wire_send_result(running, &endless);
    wire_await_queued(&h, 1);
    for (int i = 0; i < 10; i++) {
        struct wire *a = wire_greet(&h), *b = wire_greet(&h);
        endless.permutation.seed++;
        wire_send_result(a, &endless);
        endless.permutation.seed++; /* a different request, so another job */
        wire_send_result(b, &endless);
        wire_await_queued(&h, 3);
        wire_close(i % 2 ? a : b); /* once the newer waiting job first, once the older one */
        wire_await_queued(&h, 2);
        wire_close(i % 2 ? b : a);
        wire_await_queued(&h, 1);
    }
    wire_send_result(last, &small);
    wire_await_queued(&h, 2);
    wire_close(running);
    wire_expect(last, SHUF_OK, "");
    wire_close(last);
    assert_true(harness_stop(&h));
}

static void test_client_above_limit_is_refused(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "clients = 2\n");
    struct wire *a = wire_greet(&h), *b = wire_greet(&h), *c = wire_open(&h);
    const Shuf__Reply *reply =
        wire_expect(c, SHUF_BUSY, "clients 2: the most that may be connected; try again later");
    assert_int_equal(reply->id, 0);
    wire_expect_end(c);
    wire_close(c);
    wire_check_alive(a);
    wire_close(b);
    /* The daemon accepts another connection after it has noticed that b is closed. */
    for (bool refused = true; refused;) {
        c = wire_open(&h);
        wire_send_hello(c, SHUF__PROTOCOL_VERSION);
        refused = wire_receive(c)->status == SHUF_BUSY;
        wire_close(c);
    }
    wire_close(a);
    assert_true(harness_stop(&h));
}

static void test_slow_frames_are_refused(void **state)
{
    (void)state;
    static const uint8_t half[] = {20, 0, 0, 0, 1, 2, 3};
    struct harness h;
    wire_start(&h, harness_backend, "frame_timeout = 3s\n");
    struct wire *idle = wire_greet(&h), *silent = wire_open(&h), *slow = wire_greet(&h);
    for (size_t i = 0; i < sizeof half; i++) { /* a received byte does not restart the timeout */
        wire_send_bytes(slow, half + i, 1);
        usleep(20000);
    }
    wire_expect(slow, SHUF_TIMEOUT, "frame: only 7 bytes came within 3000 ms");
    wire_expect_end(slow);
    wire_expect(silent, SHUF_TIMEOUT, "frame: only 0 bytes");
    wire_expect_end(silent);
    wire_check_alive(idle); /* an idle connection has no timeout; it is the oldest */
    wire_close(idle);
    wire_close(silent);
    wire_close(slow);
    assert_true(harness_stop(&h));
}

/* The bytes came in time, although the daemon sees the deadline first. */
static void test_stopped_daemon_refuses_no_frame(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "frame_timeout = 1s\n");
    struct wire *w = wire_open(&h);
    WIRE_AWAIT(&h, s, s.clients == 2);
    assert_true(harness_pause(&h));
    wire_send_hello(w, SHUF__PROTOCOL_VERSION);
    usleep(1500000);
    harness_continue(&h);
    wire_expect(w, SHUF_OK, "");
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_descriptors_are_refused(void **state)
{
    (void)state;
    enum { DESCRIPTORS = 3 };
    int descriptors[DESCRIPTORS] = {0, 1, 2};
    uint8_t frame[256];
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    unsigned before = wire_descriptors(harness_shared.pid);
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(&permute);
    for (int i = 0; i < 10; i++) {
        struct wire *w = wire_greet(&harness_shared);
        const size_t size = wire_pack(w, &request, frame, sizeof frame);
        const ssize_t sent = wire_try_descriptors(w->fd, frame, size, descriptors, DESCRIPTORS, 0);
        if (sent < 0) { /* Linux 6.16 and newer; server.old_kernel has the rest */
            assert_int_equal(errno, EPERM);
            wire_check_alive(w);
        } else {
            assert_int_equal(sent, size);
            wire_expect(w, SHUF_PROTOCOL, "bytes with descriptors: expected bytes alone");
        }
        wire_close(w);
    }
    for (unsigned waited = 0; wire_descriptors(harness_shared.pid) > before + 2;)
        wire_wait(&waited, "no descriptors of clients are left");
}

static void connect_many(int connections)
{
    for (int i = 0; i < connections; i++) {
        struct wire *w = i % 4 ? wire_greet(&harness_shared) : wire_open(&harness_shared);
        if (i % 4 == 1)
            wire_check_alive(w);
        if (i % 4 == 2)
            wire_send_bytes(w, "\x08", 1);
        wire_close(w);
    }
    for (int waited = 0; wire_status(&harness_shared).clients > 1; waited += 5) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
    }
}

static void test_connections_leak_nothing(void **state)
{
    (void)state;
    connect_many(200);
    unsigned descriptors = wire_descriptors(harness_shared.pid);
    uint64_t memory = wire_private_bytes(harness_shared.pid);
    connect_many(1000);
    assert_true(wire_descriptors(harness_shared.pid) < descriptors + 10);
    if (!TEST_SANITIZED) /* a sanitizer keeps freed memory on purpose */
        assert_true(wire_private_bytes(harness_shared.pid) <= memory + (1 << 20));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake),
        cmocka_unit_test(test_wrong_version),
        cmocka_unit_test(test_hello_comes_first_and_once),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_large_unpacked_frame_is_refused),
        cmocka_unit_test(test_frame_sent_byte_by_byte),
        cmocka_unit_test(test_pipelined_requests_are_served),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_empty_shard),
        cmocka_unit_test(test_bad_permutes_are_refused),
        cmocka_unit_test(test_bad_views_are_refused),
        cmocka_unit_test(test_client_leaves_during_computation),
        cmocka_unit_test(test_client_leaves_in_the_queue),
        cmocka_unit_test(test_client_leaves_during_payload),
        cmocka_unit_test(test_half_close_ends_connection),
        cmocka_unit_test(test_unread_results),
        cmocka_unit_test(test_queue_full),
        cmocka_unit_test(test_queue_place_of_lost_client_is_free),
        cmocka_unit_test(test_client_above_limit_is_refused),
        cmocka_unit_test(test_slow_frames_are_refused),
        cmocka_unit_test(test_stopped_daemon_refuses_no_frame),
        cmocka_unit_test(test_descriptors_are_refused),
        cmocka_unit_test(test_connections_leak_nothing),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
