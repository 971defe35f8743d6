/* SPDX-License-Identifier: MIT
 *
 * Shuffle messages without libshuf: their fields, the error of every wrong field, the memory of the
 * result, and an input that is released with the request.
 */
#include "result_message.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/wire_shuffle.h"

#include <stdlib.h>
#include <string.h>

enum { N = 5000, RECORD = 12, BYTES = N * RECORD };

#define NONE SHUF__TRANSPORT__TRANSPORT_NONE
#define SENT SHUF__TRANSPORT__TRANSPORT_INLINE
#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_FD

static bool cuda;

static void write_all(struct wire *w, uint64_t lease, const uint8_t *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i += SHUF__WRITE_MAX) {
        wire_send_write(w, lease, i, data + i,
                        size - i < SHUF__WRITE_MAX ? size - i : SHUF__WRITE_MAX);
        assert_int_equal(wire_expect(w, SHUF_OK, "")->body_case, SHUF__REPLY__BODY_WRITE);
    }
}

/* Makes bytes so that no two records are equal. */
static uint8_t *numbered_records(void)
{
    uint8_t *bytes = calloc(N, RECORD);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < RECORD; j++)
            bytes[i * RECORD + j] = (uint8_t)(i >> (8 * (j % 4))) ^ (uint8_t)(j * 37);
    return bytes;
}

static void check_records(const uint8_t *in, const uint8_t *out, bool inverse)
{
    const shuf_primefold f = shuf_primefold_make(N, 7, 0);
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t p = shuf_primefold_forward(&f, i);
        assert_memory_equal(out + (inverse ? p : i) * RECORD, in + (inverse ? i : p) * RECORD,
                            RECORD);
    }
}

static uint8_t *receive_payload(struct wire *w, const Shuf__Reply *reply)
{
    const uint64_t size = reply->payload_bytes;
    uint8_t *bytes = malloc(size);
    wire_read_payload(w, bytes, size);
    return bytes;
}

/* ---- fields -------------------------------------------------------------------------- */

static void shuffle_by_mapping(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = wire_allocate(w, BYTES, HOST);
    uint8_t *in = numbered_records(), *buffer = wire_map_writable(w, b.block_bytes);
    assert_true(wire_is_zero(buffer, b.block_bytes));
    memcpy(buffer, in, BYTES);
    for (int inverse = 0; inverse < 2; inverse++) {
        struct shuf__result_message s = wire_shuffle_of(b.lease, N, RECORD, HOST);
        s.shuffle.inverse = inverse;
        const Shuf__ResultReply r = *wire_shuffle(w, &s)->result;
        assert_int_not_equal(r.block, b.block);
        const void *out = wire_map(w, r.block_bytes);
        check_records(in, out, inverse);
        assert_true(wire_is_zero((const uint8_t *)out + BYTES, r.block_bytes - BYTES));
        wire_unmap(out, r.block_bytes);
    }
    assert_memory_equal(buffer, in, BYTES);
    assert_int_equal(wire_status(*state).served, 2);
    assert_int_equal(wire_status(*state).computed, 2);
    wire_unmap(buffer, b.block_bytes);
    free(in);
    wire_close(w);
}

static void shuffle_by_messages(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = wire_allocate(w, BYTES, SENT);
    uint8_t *in = numbered_records();
    write_all(w, b.lease, in, BYTES);
    for (int inverse = 0; inverse < 2; inverse++) {
        struct shuf__result_message s = wire_shuffle_of(b.lease, N, RECORD, SENT);
        s.shuffle.inverse = inverse;
        const Shuf__Reply *reply = wire_shuffle(w, &s);
        assert_true(reply->payload_bytes == BYTES && reply->result->lease == 0);
        uint8_t *out = receive_payload(w, reply);
        check_records(in, out, inverse);
        free(out);
    }
    free(in);
    wire_close(w);
}

static void shuffle_without_transport_returns_no_values(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = wire_allocate(w, BYTES, HOST);
    struct shuf__result_message s = wire_shuffle_of(b.lease, N, RECORD, NONE);
    const Shuf__Reply *reply = wire_shuffle(w, &s);
    assert_int_equal(reply->payload_bytes + reply->result->lease + reply->result->block, 0);
    assert_int_equal(reply->result->transport, NONE);
    wire_close(w);
}

/* A shuffle of a part of the buffer uses the bytes that the buffer has at that time. Another
 * client's buffer has none of them. */
static void shuffle_uses_current_bytes(void **state)
{
    struct wire *w = wire_greet(*state), *other = wire_greet(*state);
    const Shuf__ResultReply b = wire_allocate(w, 100, HOST);
    uint8_t *buffer = wire_map_writable(w, b.block_bytes);
    for (uint8_t round = 1; round < 4; round++) {
        memset(buffer, round, 100);
        struct shuf__result_message s = wire_shuffle_of(b.lease, 9, 10, SENT);
        const Shuf__Reply *reply = wire_shuffle(w, &s);
        assert_int_equal(reply->payload_bytes, 90);
        uint8_t *out = receive_payload(w, reply);
        assert_true(out[0] == round && out[89] == round);
        free(out);
    }
    const Shuf__ResultReply c = wire_allocate(other, 100, HOST);
    assert_int_not_equal(c.block, b.block);
    const uint8_t *empty = wire_map(other, c.block_bytes);
    assert_true(wire_is_zero(empty, c.block_bytes));
    Shuf__StatusReply status = wire_status(*state);
    assert_true(status.hits == 0 && status.computed == 3 && status.buffers == 2);
    wire_unmap(empty, c.block_bytes);
    wire_unmap(buffer, b.block_bytes);
    wire_close(other);
    wire_close(w);
}

/* ---- wrong fields ------------------------------------------------------------------- */

static void wrong_shuffles_are_refused(void **state)
{
    struct wire *w = wire_greet(*state);
    const uint64_t lease = wire_allocate(w, 1000, HOST).lease;
    static const struct {
        uint64_t n, record;
        const char *algorithm, *words;
    } cases[] = {
        {0, 8, "", "n 0: expected 1 to 2^62"},
        {(UINT64_C(1) << 62) + 1, 1, "", "n 4611686018427387905: expected 1 to 2^62"},
        {10, 0, "", "record 0: expected at least 1 byte"},
        {1, 65537, "", "n 1, record 65537: 65537 bytes, expected at most the 1000 of lease"},
        {1, UINT64_MAX, "", "n 1, record 18446744073709551615: so many bytes pass 2^63"},
        {126, 8, "", "n 126, record 8: 1008 bytes, expected at most the 1000 of lease"},
        {UINT64_C(1) << 61, 8, "", "n 2305843009213693952, record 8: so many bytes pass 2^63"},
        {UINT64_C(1) << 62, 4096, "", "so many bytes pass 2^63"},
        {10, 10, "sort", "algorithm \"sort\": expected primefold"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__result_message s = wire_shuffle_of(lease, cases[i].n, cases[i].record, HOST);
        s.permutation.algorithm = (char *)(uintptr_t)cases[i].algorithm;
        wire_send_result(w, &s);
        wire_expect(w, SHUF_INVALID, cases[i].words);
    }
    struct shuf__result_message s = wire_shuffle_of(0, 10, 10, HOST);
    wire_send_result(w, &s);
    wire_expect(w, SHUF_INVALID, "lease 0: expected one that this connection holds");
    s = wire_shuffle_of(lease, 125, 8, HOST);
    wire_shuffle(w, &s);
    wire_close(w);
}

/* The result is on the same side as the input, host or device. The client cannot choose the other
 * side. */
static void result_stays_on_the_side_of_input(void **state)
{
    struct wire *w = wire_greet(*state);
    Shuf__Transport both[] = {HOST, DEVICE};
    const uint64_t host = wire_allocate(w, BYTES, HOST).lease;
    struct shuf__result_message s = wire_shuffle_of(host, N, RECORD, DEVICE);
    wire_send_result(w, &s);
    wire_expect(w, SHUF_INVALID,
                "transport cuda-fd: the input is in host memory, expected memfd, inline");
    s.delivery.accept = both;
    s.delivery.n_accept = 2;
    assert_int_equal(wire_shuffle(w, &s)->result->transport, HOST);
    if (cuda) {
        s.shuffle.lease = wire_allocate(w, BYTES, DEVICE).lease;
        assert_int_equal(wire_shuffle(w, &s)->result->transport, DEVICE);
        s.delivery.n_accept = 1;
        wire_send_result(w, &s);
        wire_expect(w, SHUF_INVALID, "transport memfd: the input is in device memory, expected");
    }
    wire_close(w);
}

/* ---- the input ----------------------------------------------------------------------- */

/* A request may release its own input. The release takes effect after the shuffle. */
static void input_is_released_after_shuffle(void **state)
{
    struct wire *w = wire_greet(*state);
    Shuf__Release release = SHUF__RELEASE__INIT;
    const Shuf__ResultReply b = wire_allocate(w, BYTES, SENT);
    uint8_t *in = numbered_records();
    uint64_t lease = b.lease;
    write_all(w, b.lease, in, BYTES);
    release.lease = &lease;
    release.n_lease = 1;
    struct shuf__result_message s = wire_shuffle_of(b.lease, N, RECORD, SENT);
    s.delivery.give_back = &release;
    const Shuf__Reply *reply = wire_shuffle(w, &s);
    uint8_t *out = receive_payload(w, reply);
    check_records(in, out, false);
    WIRE_AWAIT(*state, status, status.blocks == 0 && status.leases == 0);
    wire_send_result(w, &s);
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    lease = 999;
    s = wire_shuffle_of(wire_allocate(w, BYTES, SENT).lease, N, RECORD, SENT);
    s.delivery.give_back = &release; /* a mistake in the release makes the whole request fail */
    wire_send_result(w, &s);
    wire_expect(w, SHUF_INVALID, "lease 999: expected one that this connection holds");
    free(out);
    free(in);
    wire_close(w);
    WIRE_AWAIT(*state, status, status.blocks == 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shuffle_by_mapping, wire_start_each, wire_stop_each),
        cmocka_unit_test_setup_teardown(shuffle_by_messages, wire_start_each, wire_stop_each),
        cmocka_unit_test_setup_teardown(shuffle_without_transport_returns_no_values,
                                        wire_start_each, wire_stop_each),
        cmocka_unit_test_setup_teardown(shuffle_uses_current_bytes, wire_start_each,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(wrong_shuffles_are_refused, wire_start_each,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(result_stays_on_the_side_of_input, wire_start_each,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(input_is_released_after_shuffle, wire_start_uncached,
                                        wire_stop_each),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    cuda = strncmp(harness_backend, "cuda", 4) == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
