/* SPDX-License-Identifier: MIT
 *
 * Allocate, Write and Shuffle by hand: what travels, every field refused by name, whose
 * leases they take, what a buffer costs and when its memory is free again.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "wire.h"

#include "shuf/primefold.h"
#include "shuffle.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = 5000, RECORD = 12, BYTES = N * RECORD };

#define NONE SHUF__TRANSPORT__TRANSPORT_NONE
#define SENT SHUF__TRANSPORT__TRANSPORT_INLINE
#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_FD

static const char *backend;
static bool cuda;

static int start(void **state)
{
    static struct harness h;
    *state = harness_start(&h, backend, NULL) ? &h : NULL;
    return *state ? 0 : -1;
}

static int start_uncached(void **state)
{
    static struct harness h;
    wire_start(&h, backend, "cache_ms = 0\n");
    *state = &h;
    return 0;
}

static int start_small(void **state)
{
    static struct harness h;
    wire_start(&h, backend, "cache_ms = 0\nhost_memory = 16Mi\n");
    *state = &h;
    return 0;
}

static int stop(void **state)
{
    return harness_stop(*state) ? 0 : -1;
}

/* ---- requests -------------------------------------------------------------------- */

static Shuf__Transport *accept_list(Shuf__Transport transport)
{
    static Shuf__Transport lists[SHUF__TRANSPORT__TRANSPORT_CUDA_IPC + 1];
    lists[transport] = transport;
    return &lists[transport];
}

static void send_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport)
{
    Shuf__Allocate allocate = SHUF__ALLOCATE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    allocate.bytes = bytes;
    allocate.accept = accept_list(transport);
    allocate.n_accept = transport != NONE;
    request.body_case = SHUF__REQUEST__BODY_ALLOCATE;
    request.allocate = &allocate;
    wire_send(w, &request);
}

static Shuf__ResultReply allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport)
{
    send_allocate(w, bytes, transport);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    const Shuf__ResultReply r = *reply->result;
    assert_true(r.lease != 0 && r.block != 0 && r.block_bytes >= bytes && !r.shared);
    assert_true(r.transport == transport && r.bytes == bytes && r.count == bytes && r.rows == 1);
    assert_int_equal(r.descriptor, transport == HOST || transport == DEVICE);
    assert_int_equal(reply->bulk_bytes + r.n_head + r.n_tail + r.record, 0);
    return r;
}

static void send_write(struct wire *w, uint64_t lease, uint64_t offset, const void *data,
                       size_t size)
{
    Shuf__Write write = SHUF__WRITE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    write.lease = lease;
    write.offset = offset;
    write.data.data = (uint8_t *)(uintptr_t)data;
    write.data.len = size;
    request.body_case = SHUF__REQUEST__BODY_WRITE;
    request.write = &write;
    wire_send(w, &request);
}

static void write_all(struct wire *w, uint64_t lease, const uint8_t *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i += SHUF__WRITE_MAX) {
        send_write(w, lease, i, data + i, size - i < SHUF__WRITE_MAX ? size - i : SHUF__WRITE_MAX);
        assert_int_equal(wire_expect(w, SHUF_OK, "")->body_case, SHUF__REPLY__BODY_WRITE);
    }
}

static Shuf__Shuffle shuffle_of(uint64_t lease, uint64_t n, uint64_t record,
                                Shuf__Transport transport)
{
    Shuf__Shuffle shuffle = SHUF__SHUFFLE__INIT;
    shuffle.n = n;
    shuffle.record = record;
    shuffle.seed = 7;
    shuffle.lease = lease;
    shuffle.accept = accept_list(transport);
    shuffle.n_accept = transport != NONE;
    return shuffle;
}

static void send_shuffle(struct wire *w, Shuf__Shuffle *shuffle)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_SHUFFLE;
    request.shuffle = shuffle;
    wire_send(w, &request);
}

static const Shuf__Reply *shuffle(struct wire *w, Shuf__Shuffle *shuffle)
{
    send_shuffle(w, shuffle);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    const Shuf__ResultReply *r = reply->result;
    assert_string_equal(r->algorithm, "primefold");
    assert_true(r->rows == 1 && r->count == shuffle->n && r->record == shuffle->record);
    assert_true(r->bytes == shuffle->n * shuffle->record && !r->shared);
    assert_int_equal(r->n_head + r->n_tail + r->fingerprint, 0);
    return reply;
}

/* ---- bytes ------------------------------------------------------------------------ */

/* No two records are the same. */
static uint8_t *numbered(void)
{
    uint8_t *bytes = calloc(N, RECORD);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < RECORD; j++)
            bytes[i * RECORD + j] = (uint8_t)(i >> (8 * (j % 4))) ^ (uint8_t)(j * 37);
    return bytes;
}

static void check(const uint8_t *in, const uint8_t *out, bool inverse)
{
    const shuf_primefold f = shuf_primefold_make(N, 7, 0);
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t p = shuf_primefold_forward(&f, i);
        assert_memory_equal(out + (inverse ? p : i) * RECORD, in + (inverse ? i : p) * RECORD,
                            RECORD);
    }
}

static void *map_writable(struct wire *w, uint64_t bytes)
{
    int fd = wire_take_descriptor(w);
    void *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    close(fd);
    return view;
}

static bool all_zero(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static uint8_t *receive_bulk(struct wire *w, const Shuf__Reply *reply)
{
    const uint64_t size = reply->bulk_bytes;
    uint8_t *bytes = malloc(size);
    wire_read_bulk(w, bytes, size);
    return bytes;
}

/* ---- what travels ------------------------------------------------------------------ */

static void by_mapping(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = allocate(w, BYTES, HOST);
    uint8_t *in = numbered(), *buffer = map_writable(w, b.block_bytes);
    assert_true(all_zero(buffer, b.block_bytes));
    memcpy(buffer, in, BYTES);
    for (int inverse = 0; inverse < 2; inverse++) {
        Shuf__Shuffle s = shuffle_of(b.lease, N, RECORD, HOST);
        s.inverse = inverse;
        const Shuf__ResultReply r = *shuffle(w, &s)->result;
        assert_int_not_equal(r.block, b.block);
        const void *out = wire_map(w, r.block_bytes);
        check(in, out, inverse);
        assert_true(all_zero((const uint8_t *)out + BYTES, r.block_bytes - BYTES));
        wire_unmap(out, r.block_bytes);
    }
    assert_memory_equal(buffer, in, BYTES);
    assert_int_equal(wire_status(*state).served, 2);
    assert_int_equal(wire_status(*state).computed, 2);
    wire_unmap(buffer, b.block_bytes);
    free(in);
    wire_close(w);
}

static void by_bytes(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = allocate(w, BYTES, SENT);
    uint8_t *in = numbered();
    write_all(w, b.lease, in, BYTES);
    for (int inverse = 0; inverse < 2; inverse++) {
        Shuf__Shuffle s = shuffle_of(b.lease, N, RECORD, SENT);
        s.inverse = inverse;
        const Shuf__Reply *reply = shuffle(w, &s);
        assert_true(reply->bulk_bytes == BYTES && reply->result->lease == 0);
        uint8_t *out = receive_bulk(w, reply);
        check(in, out, inverse);
        free(out);
    }
    free(in);
    wire_close(w);
}

static void nothing_accepted(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = allocate(w, BYTES, HOST);
    Shuf__Shuffle s = shuffle_of(b.lease, N, RECORD, NONE);
    const Shuf__Reply *reply = shuffle(w, &s);
    assert_int_equal(reply->bulk_bytes + reply->result->lease + reply->result->block, 0);
    assert_int_equal(reply->result->transport, NONE);
    wire_close(w);
}

/* Part of the input, and as it is at the time; nobody is given what was there before. */
static void as_it_is(void **state)
{
    struct wire *w = wire_greet(*state), *other = wire_greet(*state);
    const Shuf__ResultReply b = allocate(w, 100, HOST);
    uint8_t *buffer = map_writable(w, b.block_bytes);
    for (uint8_t round = 1; round < 4; round++) {
        memset(buffer, round, 100);
        Shuf__Shuffle s = shuffle_of(b.lease, 9, 10, SENT);
        const Shuf__Reply *reply = shuffle(w, &s);
        assert_int_equal(reply->bulk_bytes, 90);
        uint8_t *out = receive_bulk(w, reply);
        assert_true(out[0] == round && out[89] == round);
        free(out);
    }
    const Shuf__ResultReply c = allocate(other, 100, HOST);
    assert_int_not_equal(c.block, b.block);
    const uint8_t *empty = wire_map(other, c.block_bytes);
    assert_true(all_zero(empty, c.block_bytes));
    Shuf__StatusReply status = wire_status(*state);
    assert_true(status.hits == 0 && status.computed == 3 && status.buffers == 2);
    wire_unmap(empty, c.block_bytes);
    wire_unmap(buffer, b.block_bytes);
    wire_close(other);
    wire_close(w);
}

/* The client may write, and nothing else: neither the size nor the seals are its to change. */
static void sealed(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = allocate(w, BYTES, HOST);
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
    Shuf__Shuffle s = shuffle_of(b.lease, N, RECORD, HOST);
    const Shuf__ResultReply r = *shuffle(w, &s)->result;
    fd = wire_take_descriptor(w);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_ptr_equal(mmap(NULL, r.block_bytes, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close(fd);
    wire_check_alive(w);
    wire_close(w);
}

/* ---- what is refused ---------------------------------------------------------------- */

static void wrong_allocations(void **state)
{
    struct wire *w = wire_greet(*state);
    send_allocate(w, 0, HOST);
    wire_expect(w, SHUF_INVALID, "bytes 0: expected at least 1");
    send_allocate(w, UINT64_C(1) << 63, HOST);
    wire_expect(w, SHUF_NO_MEMORY, "bytes 9223372036854775808: expected less than 2^63");
    send_allocate(w, INT64_MAX, HOST);
    wire_expect(w, SHUF_NO_MEMORY, "expected at most");
    send_allocate(w, 100, NONE);
    wire_expect(w, SHUF_INVALID, "accept: no transport in it");
    if (!cuda) {
        send_allocate(w, 100, DEVICE);
        wire_expect(w, SHUF_INVALID, "transport cuda-fd: the backend cpu has memfd, inline");
    }
    wire_check_alive(w);
    assert_int_equal(wire_status(*state).blocks - (wire_status(*state).idle > 0), 0);
    wire_close(w);
}

static void wrong_writes(void **state)
{
    static uint8_t data[SHUF__WRITE_MAX + 1];
    struct wire *w = wire_greet(*state);
    const uint64_t buffer = allocate(w, 1000, HOST).lease;
    const uint64_t result = wire_lease(w, 1000, 7, HOST)->lease;
    static const struct {
        uint64_t offset;
        size_t size;
        const char *words;
    } cases[] = {
        {0, 0, "data of 0 bytes: expected 1 to 61440"},
        {0, SHUF__WRITE_MAX + 1, "data of 61441 bytes: expected 1 to 61440"},
        {0, 1001, "offset 0, 1001 bytes: expected to end within the 1000"},
        {1000, 1, "offset 1000, 1 bytes: expected"},
        {UINT64_MAX, 2, "offset 18446744073709551615, 2 bytes: expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_write(w, buffer, cases[i].offset, data, cases[i].size);
        wire_expect(w, SHUF_INVALID, cases[i].words);
    }
    send_write(w, result, 0, data, 1);
    wire_expect(w, SHUF_INVALID, "a result, expected a buffer to write to");
    send_write(w, 12345, 0, data, 1);
    wire_expect(w, SHUF_INVALID, "lease 12345: expected one that this connection holds");
    send_write(w, buffer, 999, data, 1);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

static void wrong_shuffles(void **state)
{
    struct wire *w = wire_greet(*state);
    const uint64_t lease = allocate(w, 1000, HOST).lease;
    static const struct {
        uint64_t n, record;
        const char *algorithm, *words;
    } cases[] = {
        {0, 8, "", "n 0: expected 1 to 2^62"},
        {(UINT64_C(1) << 62) + 1, 1, "", "n 4611686018427387905: expected 1 to 2^62"},
        {10, 0, "", "record 0: expected 1 to 65536 bytes"},
        {1, 65537, "", "record 65537: expected 1 to 65536 bytes"},
        {1, UINT64_MAX, "", "record 18446744073709551615: expected"},
        {126, 8, "", "n 126, record 8: 1008 bytes, expected at most the 1000 of lease"},
        {UINT64_C(1) << 61, 8, "", "n 2305843009213693952, record 8: so many bytes pass 2^63"},
        {UINT64_C(1) << 62, 4096, "", "so many bytes pass 2^63"},
        {10, 10, "sort", "algorithm \"sort\": expected primefold"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Shuf__Shuffle s = shuffle_of(lease, cases[i].n, cases[i].record, HOST);
        s.algorithm = (char *)(uintptr_t)cases[i].algorithm;
        send_shuffle(w, &s);
        wire_expect(w, SHUF_INVALID, cases[i].words);
    }
    Shuf__Shuffle s = shuffle_of(0, 10, 10, HOST);
    send_shuffle(w, &s);
    wire_expect(w, SHUF_INVALID, "lease 0: expected one that this connection holds");
    s = shuffle_of(lease, 125, 8, HOST);
    shuffle(w, &s);
    wire_close(w);
}

/* Neither the leases of others nor what is only prefetched. */
static void whose_lease(void **state)
{
    struct wire *w = wire_greet(*state), *other = wire_greet(*state);
    const uint64_t lease = allocate(w, BYTES, HOST).lease;
    Shuf__Shuffle s = shuffle_of(lease, N, RECORD, HOST);
    send_shuffle(other, &s);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    send_write(other, lease, 0, "1", 1);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    wire_send_release(other, &s.lease, 1, NULL, 0);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    Shuf__Permute ahead = wire_permutation(N, HOST);
    ahead.prefetch = true;
    wire_send_permute(w, &ahead);
    wire_expect(w, SHUF_OK, "");
    wire_await_queued(*state, 0);
    s = shuffle_of(lease + 1, N, 4, HOST);
    send_shuffle(w, &s);
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    wire_close(other);
    wire_close(w);
}

/* The result is on the input's side, whatever else is accepted. */
static void sides(void **state)
{
    struct wire *w = wire_greet(*state);
    Shuf__Transport both[] = {HOST, DEVICE};
    const uint64_t host = allocate(w, BYTES, HOST).lease;
    Shuf__Shuffle s = shuffle_of(host, N, RECORD, DEVICE);
    send_shuffle(w, &s);
    wire_expect(w, SHUF_INVALID,
                "transport cuda-fd: the input is in host memory, expected memfd, inline");
    s.accept = both;
    s.n_accept = 2;
    assert_int_equal(shuffle(w, &s)->result->transport, HOST);
    if (cuda) {
        s.lease = allocate(w, BYTES, DEVICE).lease;
        assert_int_equal(shuffle(w, &s)->result->transport, DEVICE);
        s.n_accept = 1;
        send_shuffle(w, &s);
        wire_expect(w, SHUF_INVALID, "transport memfd: the input is in device memory, expected");
    }
    wire_close(w);
}

/* ---- when memory is free again -------------------------------------------------------- */

static void expect_used(const struct harness *h, uint64_t host_used, uint64_t lingering)
{
    usleep(100000); /* in which the daemon looks at what lingers several times */
    Shuf__StatusReply s = wire_status(h);
    assert_int_equal(s.host_used, host_used);
    assert_int_equal(s.lingering, lingering);
}

/* Given back and still mapped: it may be written to, so it is nobody else's. */
static void given_back_and_mapped(void **state)
{
    struct wire *w = wire_greet(*state);
    const Shuf__ResultReply b = allocate(w, UNIT, HOST);
    uint8_t *buffer = map_writable(w, b.block_bytes);
    memset(buffer, 0xaa, UNIT);
    wire_release(w, b.lease, b.block); /* its word is not believed */
    expect_used(*state, UNIT, 1);
    const Shuf__ResultReply c = allocate(w, UNIT, HOST);
    assert_int_not_equal(c.block, b.block);
    const uint8_t *fresh = wire_map(w, c.block_bytes);
    memset(buffer, 0xbb, UNIT);
    assert_true(all_zero(fresh, UNIT));
    wire_unmap(fresh, c.block_bytes);
    wire_release(w, c.lease, c.block);
    expect_used(*state, UNIT, 1);
    wire_unmap(buffer, b.block_bytes);
    expect_used(*state, 0, 0);
    wire_close(w);
}

/* The descriptor alone is enough to keep it, also when the connection is gone. */
static void hung_up_with_a_descriptor(void **state)
{
    struct wire *w = wire_greet(*state);
    allocate(w, UNIT, HOST);
    int fd = wire_take_descriptor(w);
    wire_close(w);
    expect_used(*state, UNIT, 1);
    assert_int_equal(pwrite(fd, "1", 1, 0), 1);
    close(fd);
    expect_used(*state, 0, 0);
}

/* The input goes with the request that it is given back with, and not before. */
static void given_back_in_use(void **state)
{
    struct wire *w = wire_greet(*state);
    Shuf__Release release = SHUF__RELEASE__INIT;
    const Shuf__ResultReply b = allocate(w, BYTES, SENT);
    uint8_t *in = numbered();
    uint64_t lease = b.lease;
    write_all(w, b.lease, in, BYTES);
    release.lease = &lease;
    release.n_lease = 1;
    Shuf__Shuffle s = shuffle_of(b.lease, N, RECORD, SENT);
    s.give_back = &release;
    const Shuf__Reply *reply = shuffle(w, &s);
    uint8_t *out = receive_bulk(w, reply);
    check(in, out, false);
    WIRE_AWAIT(*state, status, status.blocks == 0 && status.leases == 0);
    send_shuffle(w, &s);
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    lease = 999;
    s = shuffle_of(allocate(w, BYTES, SENT).lease, N, RECORD, SENT);
    s.give_back = &release; /* what is wrong in it fails all */
    send_shuffle(w, &s);
    wire_expect(w, SHUF_INVALID, "lease 999: expected one that this connection holds");
    free(out);
    free(in);
    wire_close(w);
    WIRE_AWAIT(*state, status, status.blocks == 0);
}

struct part {
    const struct harness *h;
    bool shuffles;
};

/* Slow enough to be met at work: the order is found by counting. */
enum { SLOW = (64 << 20) - 1 };

static void hold(int channel, void *context)
{
    const struct part *part = context;
    struct wire *w = wire_greet(part->h);
    const Shuf__ResultReply b = allocate(w, SLOW, HOST);
    memset(map_writable(w, b.block_bytes), 7, SLOW);
    if (part->shuffles) {
        Shuf__Shuffle s = shuffle_of(b.lease, SLOW, 1, HOST);
        s.algorithm = (char *)(uintptr_t) "lcg";
        send_shuffle(w, &s);
    }
    child_say(channel, b.block);
    pause();
}

static void check_killed(const struct harness *h, bool shuffles)
{
    struct part part = {h, shuffles};
    struct child child = child_start(hold, &part);
    child_hear(child.channel);
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

static void killed_with_a_buffer(void **state)
{
    check_killed(*state, false);
}

static void killed_while_it_is_shuffled(void **state)
{
    check_killed(*state, true);
}

/* ---- what it is charged to -------------------------------------------------------------- */

static void budgets(void **state)
{
    struct wire *w = wire_greet(*state), *other = wire_greet(*state);
    send_allocate(w, 17 << 20, HOST);
    wire_expect(w, SHUF_NO_MEMORY, "block of 18874368 bytes: expected at most 16777216");
    Shuf__ResultReply b = allocate(w, 12 << 20, HOST);
    send_allocate(other, 12 << 20, HOST);
    wire_expect(other, SHUF_BUSY, "12582912 of 16777216 are in use by other results");
    Shuf__Shuffle s = shuffle_of(b.lease, 12 << 20, 1, HOST);
    send_shuffle(w, &s);
    wire_expect(w, SHUF_NO_MEMORY,
                "block of 12582912 bytes beside 12582912 that its input and the work on it take: "
                "expected at most 16777216 together");
    s.n = 3 << 20;
    shuffle(w, &s);
    assert_true(wire_status(*state).host_used <= 16 << 20);
    wire_close(w);
    WIRE_AWAIT(*state, status, status.host_used == 0);
    b = allocate(other, 8 << 20, HOST);
    s = shuffle_of(b.lease, 8 << 20, 1, HOST);
    shuffle(other, &s);
    wire_close(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_mapping, start, stop),
        cmocka_unit_test_setup_teardown(by_bytes, start, stop),
        cmocka_unit_test_setup_teardown(nothing_accepted, start, stop),
        cmocka_unit_test_setup_teardown(as_it_is, start, stop),
        cmocka_unit_test_setup_teardown(sealed, start, stop),
        cmocka_unit_test_setup_teardown(wrong_allocations, start, stop),
        cmocka_unit_test_setup_teardown(wrong_writes, start, stop),
        cmocka_unit_test_setup_teardown(wrong_shuffles, start, stop),
        cmocka_unit_test_setup_teardown(whose_lease, start, stop),
        cmocka_unit_test_setup_teardown(sides, start, stop),
        cmocka_unit_test_setup_teardown(given_back_and_mapped, start_uncached, stop),
        cmocka_unit_test_setup_teardown(hung_up_with_a_descriptor, start_uncached, stop),
        cmocka_unit_test_setup_teardown(given_back_in_use, start_uncached, stop),
        cmocka_unit_test_setup_teardown(killed_with_a_buffer, start_uncached, stop),
        cmocka_unit_test_setup_teardown(killed_while_it_is_shuffled, start_uncached, stop),
        cmocka_unit_test_setup_teardown(budgets, start_small, stop),
    };
    backend = harness_backend_or_skip(argc, argv);
    cuda = strncmp(backend, "cuda", 4) == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
