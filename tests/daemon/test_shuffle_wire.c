/* SPDX-License-Identifier: MIT
 *
 * Buffer, Write and Shuffle messages without libshuf: their fields, the error of every wrong field,
 * the users of a lease, the memory of a buffer until it is freed and that of a result, and an input
 * that is released with the request.
 */
#include "result_message.h"
#include "shuf/primefold.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- Fields ---- */

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

/* ---- Wrong fields of a shuffle ---- */

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

/* ---- The input ---- */

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

/* ---- Buffers ---- */

enum {
    UNIT = 2 << 20,
    BUFFER_N = 5000,
    BUFFER_RECORD = 12,
    BUFFER_BYTES = BUFFER_N * BUFFER_RECORD
};

static int start_small(void **state)
{
    static struct harness h;
    wire_start(&h, harness_backend, "cache_time = 0\nhost_memory = 16Mi\n");
    *state = &h;
    return 0;
}

/* The client may write to a buffer, but may not change its size or its seals. */
static void buffer_is_sealed(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = wire_allocate(w, BUFFER_BYTES, HOST);
    int fd = wire_take_descriptor(w);
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, b.block_bytes);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_not_equal(ftruncate(fd, 0), 0);
    assert_int_not_equal(ftruncate(fd, 2 * (off_t)b.block_bytes), 0);
    assert_int_not_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)b.block_bytes, UNIT), 0);
    assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    assert_int_equal(pwrite(fd, "1", 1, 7), 1);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, UNIT), 0);
    close(fd);
    struct shuf__result_message s = wire_shuffle_of(b.lease, BUFFER_N, BUFFER_RECORD, HOST);
    const Shuf__ResultReply r = *wire_shuffle(w, &s)->result;
    fd = wire_take_descriptor(w);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_ptr_equal(mmap(NULL, r.block_bytes, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close(fd);
    wire_check_alive(w);
    wire_close(w);
}

/* ---- Wrong fields of a buffer ---- */

static void wrong_allocations_are_refused(void **state)
{
    struct wire *w = wire_greet(*state);
    wire_send_allocate(w, 0, HOST);
    wire_expect(w, SHUF_INVALID, "bytes 0: expected at least 1");
    wire_send_allocate(w, UINT64_C(1) << 63, HOST);
    wire_expect(w, SHUF_NO_MEMORY, "bytes 9223372036854775808: expected less than 2^63");
    wire_send_allocate(w, INT64_MAX, HOST);
    wire_expect(w, SHUF_NO_MEMORY, "the limit is");
    wire_send_allocate(w, 100, NONE);
    wire_expect(w, SHUF_INVALID, "accept: no transport, expected the one");
    if (!cuda) {
        wire_send_allocate(w, 100, DEVICE);
        wire_expect(w, SHUF_INVALID, "transport cuda-fd: the backend cpu has only memfd, inline");
    }
    wire_check_alive(w);
    assert_int_equal(wire_status(*state).blocks - (wire_idle_bytes(*state) > 0), 0);
    wire_close(w);
}

static void wrong_writes_are_refused(void **state)
{
    static uint8_t data[SHUF__WRITE_MAX + 1];
    struct wire *w = wire_greet(*state);
    const uint64_t buffer = wire_allocate(w, 1000, HOST).lease;
    const uint64_t result = wire_lease(w, 1000, 7, HOST)->lease;
    static const struct {
        uint64_t offset;
        size_t size;
        const char *words;
    } cases[] = {
        {0, 0, "data of 0 bytes: expected 1 to 61440"},
        {0, SHUF__WRITE_MAX + 1, "data of 61441 bytes: expected 1 to 61440"},
        {0, 1001, "offset 0, 1001 bytes: expected to end within the 1000"},
        {1000, 1, "offset 1000, 1 byte: expected"},
        {UINT64_MAX, 2, "offset 18446744073709551615, 2 bytes: expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wire_send_write(w, buffer, cases[i].offset, data, cases[i].size);
        wire_expect(w, SHUF_INVALID, cases[i].words);
    }
    wire_send_write(w, result, 0, data, 1);
    wire_expect(w, SHUF_INVALID, "a result, expected a buffer to write to");
    wire_send_write(w, 12345, 0, data, 1);
    wire_expect(w, SHUF_INVALID, "lease 12345: expected one that this connection holds");
    wire_send_write(w, buffer, 999, data, 1);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

/* A lease of another connection, or of a prefetched result, cannot be used. */
static void lease_of_other_connection_is_refused(void **state)
{
    struct wire *w = wire_greet(*state), *other = wire_greet(*state);
    const uint64_t lease = wire_allocate(w, BUFFER_BYTES, HOST).lease;
    struct shuf__result_message s = wire_shuffle_of(lease, BUFFER_N, BUFFER_RECORD, HOST);
    wire_send_result(other, &s);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    wire_send_write(other, lease, 0, "1", 1);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    wire_send_release(other, &s.shuffle.lease, 1, NULL, 0);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    struct shuf__result_message ahead = wire_permutation(BUFFER_N, HOST);
    ahead.delivery.prefetch = true;
    wire_send_result(w, &ahead);
    wire_expect(w, SHUF_OK, "");
    wire_await_queued(*state, 0);
    s = wire_shuffle_of(lease + 1, BUFFER_N, 4, HOST);
    wire_send_result(w, &s);
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    wire_close(other);
    wire_close(w);
}

/* ---- When memory is free again ---- */

static void expect_used(const struct harness *h, uint64_t host_used, uint64_t pending_free)
{
    usleep(100000); /* the daemon sweeps the pending blocks several times meanwhile */
    Shuf__StatusReply s = wire_status(h);
    assert_int_equal(s.host_used, host_used);
    assert_int_equal(s.pending_free, pending_free);
}

/* The client has released the buffer, but still has it mapped. It could write to the memory, so no
 * other client gets the block. */
static void released_buffer_still_mapped_is_not_reused(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = wire_allocate(w, UNIT, HOST);
    uint8_t *buffer = wire_map_writable(w, b.block_bytes);
    memset(buffer, 0xaa, UNIT);
    wire_release(w, b.lease, b.block); /* the daemon does not trust the report of the unmapping */
    expect_used(*state, UNIT, 1);
    const Shuf__ResultReply c = wire_allocate(w, UNIT, HOST);
    assert_int_not_equal(c.block, b.block);
    const uint8_t *fresh = wire_map(w, c.block_bytes);
    memset(buffer, 0xbb, UNIT);
    assert_true(wire_is_zero(fresh, UNIT));
    wire_unmap(fresh, c.block_bytes);
    wire_release(w, c.lease, c.block);
    expect_used(*state, UNIT, 1);
    wire_unmap(buffer, b.block_bytes);
    expect_used(*state, 0, 0);
    wire_close(w);
}

/* An open descriptor keeps the memory charged, also after its connection has ended. */
static void open_descriptor_keeps_memory_charged(void **state)
{
    struct wire *w = wire_greet(*state);
    wire_allocate(w, UNIT, HOST);
    int fd = wire_take_descriptor(w);
    wire_close(w);
    expect_used(*state, UNIT, 1);
    assert_int_equal(pwrite(fd, "1", 1, 0), 1);
    close(fd);
    expect_used(*state, 0, 0);
}

struct holder {
    const struct harness *h;
    bool shuffles;
};

/* The number of records of a slow shuffle. It still runs when the signal arrives, because lcg has
 * to skip values. */
enum { SLOW = (64 << 20) - 1 };

static void hold_buffer(int channel, void *context)
{
    const struct holder *holder = context;
    struct wire *w = wire_greet(holder->h);
    const Shuf__ResultReply b = wire_allocate(w, SLOW, HOST);
    memset(wire_map_writable(w, b.block_bytes), 7, SLOW);
    if (holder->shuffles) {
        struct shuf__result_message s = wire_shuffle_of(b.lease, SLOW, 1, HOST);
        s.permutation.algorithm = (char *)(uintptr_t) "lcg";
        wire_send_result(w, &s);
    }
    child_send(channel, b.block);
    pause();
}

static void check_killed(const struct harness *h, bool shuffles)
{
    struct holder holder = {h, shuffles};
    struct child child = child_start(hold_buffer, &holder);
    child_receive(child.channel);
    Shuf__StatusReply s = wire_status(h);
    assert_true(s.buffers == 1 && s.host_used >= SLOW);
    child_kill(&child);
    WIRE_AWAIT(h, status,
               status.buffers == 0 && status.blocks == 0 && status.host_used == 0 &&
                   status.queued == 0 && status.leases == 0);
    struct wire *w = wire_greet(h);
    wire_check_alive(w);
    wire_close(w);
}

static void buffer_of_killed_client_is_freed(void **state)
{
    check_killed(*state, false);
}

static void shuffled_buffer_of_killed_client_is_freed(void **state)
{
    check_killed(*state, true);
}

/* ---- Budgets ---- */

static void buffers_count_in_the_budget(void **state)
{
    struct wire *w = wire_greet(*state), *other = wire_greet(*state);
    wire_send_allocate(w, 17 << 20, HOST);
    wire_expect(w, SHUF_NO_MEMORY, "needs 18 MiB of host memory, the limit is 16 MiB");
    Shuf__ResultReply b = wire_allocate(w, 12 << 20, HOST);
    wire_send_allocate(other, 12 << 20, HOST);
    wire_expect(
        other, SHUF_BUSY,
        "needs 12 MiB of host memory, 12 MiB of 16 MiB are held by this user's own leases and "
        "requests (host_memory): release a lease");
    struct shuf__result_message s = wire_shuffle_of(b.lease, 12 << 20, 1, HOST);
    wire_send_result(w, &s);
    wire_expect(w, SHUF_NO_MEMORY,
                "needs 24 MiB of host memory with its input and workspace, the limit is 16 MiB");
    s.permutation.n = 3 << 20;
    wire_shuffle(w, &s);
    assert_true(wire_status(*state).host_used <= 16 << 20);
    wire_close(w);
    WIRE_AWAIT(*state, status, status.host_used == 0);
    b = wire_allocate(other, 8 << 20, HOST);
    s = wire_shuffle_of(b.lease, 8 << 20, 1, HOST);
    wire_shuffle(other, &s);
    wire_close(other);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    cuda = harness_is_cuda();
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
        cmocka_unit_test_setup_teardown(buffer_is_sealed, wire_start_each, wire_stop_each),
        cmocka_unit_test_setup_teardown(wrong_allocations_are_refused, wire_start_each,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(wrong_writes_are_refused, wire_start_each, wire_stop_each),
        cmocka_unit_test_setup_teardown(lease_of_other_connection_is_refused, wire_start_each,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(released_buffer_still_mapped_is_not_reused,
                                        wire_start_uncached, wire_stop_each),
        cmocka_unit_test_setup_teardown(open_descriptor_keeps_memory_charged, wire_start_uncached,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(buffer_of_killed_client_is_freed, wire_start_uncached,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(shuffled_buffer_of_killed_client_is_freed,
                                        wire_start_uncached, wire_stop_each),
        cmocka_unit_test_setup_teardown(buffers_count_in_the_budget, start_small, wire_stop_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
