/* SPDX-License-Identifier: MIT
 *
 * Buffer and Write messages without libshuf: the operations that a client may do with a buffer,
 * the error of every wrong field, and the users of a lease. Also the memory of a buffer, until it
 * is freed.
 */
#include "result_message.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire_shuffle.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = 5000, RECORD = 12, BYTES = N * RECORD };

#define NONE SHUF__TRANSPORT__TRANSPORT_NONE
#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_FD

static bool cuda;

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
    const Shuf__ResultReply b = wire_allocate(w, BYTES, HOST);
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
    struct shuf__result_message s = wire_shuffle_of(b.lease, N, RECORD, HOST);
    const Shuf__ResultReply r = *wire_shuffle(w, &s)->result;
    fd = wire_take_descriptor(w);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_ptr_equal(mmap(NULL, r.block_bytes, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close(fd);
    wire_check_alive(w);
    wire_close(w);
}

/* ---- wrong fields ------------------------------------------------------------------- */

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
    const uint64_t lease = wire_allocate(w, BYTES, HOST).lease;
    struct shuf__result_message s = wire_shuffle_of(lease, N, RECORD, HOST);
    wire_send_result(other, &s);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    wire_send_write(other, lease, 0, "1", 1);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    wire_send_release(other, &s.shuffle.lease, 1, NULL, 0);
    wire_expect(other, SHUF_INVALID, "expected one that this connection holds");
    struct shuf__result_message ahead = wire_permutation(N, HOST);
    ahead.delivery.prefetch = true;
    wire_send_result(w, &ahead);
    wire_expect(w, SHUF_OK, "");
    wire_await_queued(*state, 0);
    s = wire_shuffle_of(lease + 1, N, 4, HOST);
    wire_send_result(w, &s);
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    wire_close(other);
    wire_close(w);
}

/* ---- when memory is free again ----------------------------------------------------- */

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

/* ---- budgets ---------------------------------------------------------------------------- */

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
    const struct CMUnitTest tests[] = {
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
    harness_backend = harness_backend_or_skip(argc, argv);
    cuda = strncmp(harness_backend, "cuda", 4) == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
