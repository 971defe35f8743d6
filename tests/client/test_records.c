/* SPDX-License-Identifier: MIT
 *
 * Shuffles of records by libshuf from a real daemon, on the backend of the command line. The
 * records are in the caller's memory, in buffers of every transport, or in leases of other results.
 * Some daemons are killed.
 */
#include "shuf.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/harness.h"
#include "support/random.h"
#include "support/take.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_gpu(void)
{
    return harness_is_cuda();
}

/* ---- Checks ---- */

static uint8_t *random_bytes(uint64_t bytes)
{
    uint8_t *made = malloc(bytes);
    assert_non_null(made);
    for (uint64_t i = 0; i < bytes; i++)
        made[i] = (uint8_t)(random_u64() >> 11);
    return made;
}

static void check_shuffle(const shuf_records *records, const uint8_t *in, const uint8_t *out)
{
    const shuf_request permutation = {.permutation = {.algorithm = records->algorithm,
                                                      .n = records->n,
                                                      .seed = records->seed,
                                                      .epoch = records->epoch}};
    uint64_t *p = expected_values(&permutation, NULL);
    for (uint64_t i = 0; i < records->n; i++) {
        const uint64_t to = records->inverse ? p[i] : i, from = records->inverse ? i : p[i];
        if (memcmp(out + to * records->record, in + from * records->record, records->record) != 0)
            fail_msg("%s n %" PRIu64 " record %" PRIu64 " inverse %d seed %" PRIu64 ": record "
                     "%" PRIu64 " is not that of %" PRIu64,
                     records->algorithm, records->n, records->record, records->inverse,
                     records->seed, to, from);
    }
    free(p);
}

static shuf_records random_records(void)
{
    static const char *const algorithms[] = {"primefold", "philox24", "lcg"};
    shuf_records records = {
        .algorithm = algorithms[random_below(3)],
        .record = random_size(random_below(8) ? 300 : 1 << 21),
        .seed = random_u64(),
        .epoch = random_u64(),
        .inverse = random_below(2),
    };
    records.n = random_size(1 + (UINT64_C(4) << 20) / records.record);
    return records;
}

/* ---- The caller's memory ---- */

static void inverse_restores_records(void **state)
{
    (void)state;
    shuf_daemon status;
    random_start("inverse_restores_records");
    shuf *handle = client_open();
    for (int i = 0; i < 60; i++) {
        shuf_result result;
        shuf_records records = random_records();
        const uint64_t bytes = records.n * records.record;
        uint8_t *in = random_bytes(bytes), *out = random_bytes(bytes),
                *result_transport = random_bytes(bytes);
        client_expect_ok(handle, shuf_shuffle(handle, &records, in, out, bytes, &result));
        check_shuffle(&records, in, out);
        assert_string_equal(result.algorithm, records.algorithm);
        assert_int_equal(result.shape.count, records.n);
        assert_int_equal(result.shape.width, records.record);
        assert_int_equal(result.shape.bytes, bytes);
        assert_int_equal(result.n_first + result.n_last, 0);
        records.inverse = !records.inverse;
        client_expect_ok(handle,
                         shuf_shuffle(handle, &records, out, result_transport, bytes, NULL));
        assert_memory_equal(in, result_transport, bytes);
        free(in);
        free(out);
        free(result_transport);
    }
    client_expect_ok(handle, shuf_daemon_status(handle, &status));
    assert_int_equal(status.leases, 0); /* no lease of a shuffle is left */
    shuf_close(handle);
}

/* Shuffles images of 224 x 224 x 3 bytes, records that do not fill whole pages, and a single record
 * of 100 MB. The records come from the caller's memory and from a buffer. */
static void large_records_are_shuffled(void **state)
{
    (void)state;
    static const shuf_records cases[] = {
        {.n = 60, .record = 150528, .seed = 7},
        {.n = 5, .record = (1 << 20) + 1, .seed = 7, .algorithm = "philox24"},
        {.n = 1, .record = 100000000, .seed = 7},
    };
    shuf *handle = client_open();
    random_start("large_records_are_shuffled");
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        shuf_records records = cases[i / 2];
        const uint64_t bytes = records.n * records.record;
        uint8_t *in = random_bytes(bytes), *out = malloc(bytes);
        shuf_lease *buffer = NULL, *lease = NULL;
        records.inverse = i % 2;
        client_expect_ok(handle, shuf_shuffle(handle, &records, in, out, bytes, NULL));
        check_shuffle(&records, in, out);
        client_expect_ok(handle, take_buffer(handle, bytes, NULL, &buffer));
        client_expect_ok(handle, shuf_lease_write(handle, buffer, 0, bytes, in));
        client_expect_ok(handle, take_shuffle(handle, &records, buffer, NULL, &lease));
        assert_int_equal(lease->result.shape.width, records.record);
        client_expect_ok(handle, shuf_lease_release(handle, &buffer));
        check_shuffle(&records, in, lease->data);
        client_expect_ok(handle, shuf_lease_release(handle, &lease));
        free(in);
        free(out);
    }
    shuf_close(handle);
}

/* If the process has no free descriptor, the bytes travel through the socket in both directions. */
static void records_travel_by_socket_without_descriptors(void **state)
{
    (void)state;
    struct rlimit old, none;
    random_start("records_travel_by_socket_without_descriptors");
    const shuf_records records = {.n = 5000, .record = 57, .seed = 7};
    const uint64_t bytes = records.n * records.record;
    uint8_t *in = random_bytes(bytes), *out = random_bytes(bytes);
    shuf *handle = client_open();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    const int next = dup(STDERR_FILENO); /* the next descriptor, which the limit forbids */
    assert_true(next > STDERR_FILENO && close(next) == 0);
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    shuf_status status = shuf_shuffle(handle, &records, in, out, bytes, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    client_expect_ok(handle, status);
    check_shuffle(&(shuf_records){.algorithm = "primefold", .n = 5000, .record = 57, .seed = 7}, in,
                  out);
    free(in);
    free(out);
    shuf_close(handle);
}

static void wrong_records_are_refused(void **state)
{
    (void)state;
    uint8_t in[80] = {0}, out[80];
    shuf *handle = client_open();
    static const struct {
        shuf_records records;
        size_t bytes;
        const char *words;
    } cases[] = {
        {{.n = 0, .record = 8}, 80, "n 0: expected 1 to 2^62"},
        {{.n = (UINT64_C(1) << 62) + 1, .record = 8}, 80, "n 4611686018427387905: expected 1 to"},
        {{.n = 10, .record = 0}, 80, "record 0: expected at least 1 byte"},
        {{.n = 10, .record = UINT64_MAX}, 80, "so many bytes pass 2^63"},
        {{.n = 10, .record = 65537}, 80, "bytes 80: expected at least 655370 for 10 records"},
        {{.n = UINT64_C(1) << 62, .record = 8}, 80, "so many bytes pass 2^63"},
        {{.n = 10, .record = 8}, 79, "bytes 79: expected at least 80 for 10 records of 8"},
        {{.algorithm = "sattolo", .n = 10, .record = 8}, 80, "algorithm \"sattolo\": expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        client_expect(handle,
                      shuf_shuffle(handle, &cases[i].records, in, out, cases[i].bytes, NULL),
                      SHUF_INVALID, cases[i].words);
    const shuf_records records = {.n = 10, .record = 4};
    client_expect(handle, shuf_shuffle(handle, &records, in, in + 39, 40, NULL), SHUF_INVALID,
                  "in and out overlap: expected 40 bytes each");
    client_expect(handle, shuf_shuffle(handle, &records, in + 39, in, 40, NULL), SHUF_INVALID,
                  "in and out overlap: expected 40 bytes each");
    client_expect_ok(handle, shuf_shuffle(handle, &records, in, in + 40, 40, NULL));
    client_expect_ok(handle, shuf_shuffle(handle, &records, in + 40, in, 40, NULL));
    client_expect(handle, shuf_shuffle(handle, &records, NULL, out, 40, NULL), SHUF_INVALID,
                  "in NULL");
    client_expect(handle, shuf_shuffle(handle, &records, in, NULL, 40, NULL), SHUF_INVALID,
                  "out NULL");
    shuf_close(handle);
}

/* ---- Buffers ---- */

static uint8_t *read_all(shuf *handle, const shuf_lease *lease)
{
    uint8_t *bytes = malloc(lease->result.shape.bytes);
    client_expect_ok(handle, shuf_lease_read(handle, lease, 0, lease->result.shape.bytes, bytes));
    return bytes;
}

static bool all_zero(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Takes a buffer by transport `input_transport` and fills it in parts. Shuffles it twice by
 * transport `result_transport`. The second shuffle also releases the lease of the first result. */
static void check_buffer(shuf_transport input_transport, shuf_transport result_transport)
{
    enum { N = 3001, RECORD = 41, BYTES = N * RECORD };
    const shuf_lease_options to = {.transports = input_transport},
                             from = {.transports = result_transport};
    shuf *handle = client_open();
    shuf_lease *buffer = NULL, *shuffled = NULL;
    uint8_t *in = random_bytes(BYTES);
    client_expect_ok(handle, take_buffer(handle, BYTES, &to, &buffer));
    assert_int_equal(buffer->transport, input_transport);
    assert_int_equal(buffer->result.shape.bytes, BYTES);
    assert_ptr_equal(buffer->buffer, buffer->data);
    assert_int_not_equal(buffer->id, 0);
    if (input_transport != SHUF_INLINE) {
        uint8_t *before = read_all(handle, buffer);
        assert_true(all_zero(before, BYTES));
        free(before);
    }
    for (uint64_t i = 0; i < BYTES; i += 50000)
        client_expect_ok(handle, shuf_lease_write(handle, buffer, i,
                                                  BYTES - i < 50000 ? BYTES - i : 50000, in + i));
    for (int i = 0; i < 2; i++) {
        const shuf_records records = {.algorithm = "philox24",
                                      .n = N,
                                      .record = RECORD,
                                      .seed = 7,
                                      .epoch = (uint64_t)i,
                                      .inverse = i};
        client_expect_ok(handle, take_shuffle(handle, &records, buffer, &from, &shuffled));
        assert_int_equal(shuffled->transport, result_transport);
        assert_null(shuffled->buffer);
        assert_false(shuffled->shared);
        uint8_t *out = read_all(handle, shuffled);
        check_shuffle(&records, in, out);
        free(out);
    }
    client_expect_ok(handle, shuf_lease_release(handle, &shuffled));
    client_expect_ok(handle, shuf_lease_release(handle, &buffer));
    free(in);
    shuf_close(handle);
}

static void buffers_by_host_transports(void **state)
{
    (void)state;
    random_start("buffers_by_host_transports");
    check_buffer(SHUF_MEMFD, SHUF_MEMFD);
    check_buffer(SHUF_MEMFD, SHUF_INLINE);
    check_buffer(SHUF_INLINE, SHUF_INLINE);
    if (!has_gpu())
        check_buffer(SHUF_INLINE, SHUF_MEMFD);
}

static void buffers_by_device_transports(void **state)
{
    (void)state;
    if (!has_gpu())
        skip();
    random_start("buffers_by_device_transports");
    check_buffer(SHUF_INLINE, SHUF_CUDA_FD);
    check_buffer(SHUF_CUDA_FD, SHUF_CUDA_FD);
    check_buffer(SHUF_CUDA_FD, SHUF_INLINE);
    check_buffer(SHUF_CUDA_IPC, SHUF_CUDA_FD);
    check_buffer(SHUF_CUDA_FD, SHUF_CUDA_IPC);
}

/* A shuffle uses the bytes that the mapping has at the time of the request. No later request can
 * find its result, so the next shuffle reuses the block. */
static void shuffle_uses_current_bytes(void **state)
{
    (void)state;
    enum { N = 1000 };
    shuf *handle = client_open();
    shuf_lease *buffer = NULL, *shuffled = NULL;
    const shuf_records records = {.algorithm = "lcg", .n = N, .record = 4, .seed = 3};
    uint64_t blocks[4];
    client_expect_ok(handle, take_buffer(handle, N * 4, NULL, &buffer));
    uint32_t *values = buffer->buffer;
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < N; i++)
            values[i] = round * N + i;
        client_expect_ok(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled));
        check_shuffle(&records, (const uint8_t *)values, shuffled->data);
        blocks[round] = shuffled->block;
        assert_int_not_equal(blocks[round], buffer->block);
    }
    assert_int_equal(blocks[2], blocks[1]);
    assert_int_equal(blocks[3], blocks[1]);
    shuf_close(handle);
}

/* The input may be any result of the daemon, and several shuffles may use it. */
static void results_are_shuffled(void **state)
{
    (void)state;
    enum { N = 4096 };
    const shuf_request permutation = {.permutation = {.n = N, .seed = 9}};
    const shuf_records records = {.algorithm = "primefold", .n = N / 2, .record = 8, .seed = 1};
    shuf *handle = client_open();
    shuf_lease *input = NULL, *once = NULL, *twice = NULL, *copy = NULL;
    client_expect_ok(handle, shuf_lease_take(handle, &permutation, NULL, &input));
    client_expect_ok(handle, take_shuffle(handle, &records, input, NULL, &once));
    check_shuffle(&records, input->data, once->data);
    client_expect_ok(handle, take_shuffle(handle, &records, once, NULL, &twice));
    check_shuffle(&records, once->data, twice->data);
    client_expect_ok(handle, shuf_lease_release(handle, &input));
    check_shuffle(&records, once->data, twice->data);
    const shuf_records longer = {.n = N / 2 + 1, .record = 8};
    client_expect(handle, take_shuffle(handle, &longer, once, NULL, &copy), SHUF_INVALID,
                  "n 2049, record 8: 16392 bytes, expected at most the 16384 of lease");
    client_expect(handle, take_shuffle(handle, &records, once, NULL, &once), SHUF_INVALID,
                  "the input, expected another");
    client_expect(handle, take_shuffle(handle, &records, NULL, NULL, &copy), SHUF_INVALID,
                  "input NULL: expected");
    client_expect(handle, shuf_lease_write(handle, once, 0, 1, ""), SHUF_INVALID,
                  "a result, expected a buffer");
    const shuf_lease_options sent = {.transports = SHUF_INLINE};
    client_expect_ok(handle, shuf_lease_take(handle, &permutation, &sent, &copy));
    shuf_lease *none = NULL;
    client_expect(handle, take_shuffle(handle, &records, copy, NULL, &none), SHUF_INVALID,
                  "input by inline: a copy in this process");
    assert_null(none);
    shuf_close(handle);
}

static void wrong_buffers_are_refused(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    const shuf_lease_options sent = {.transports = SHUF_INLINE};
    char byte;
    client_expect(handle, take_buffer(handle, 0, NULL, &lease), SHUF_INVALID, "bytes 0: expected");
    client_expect(handle, take_buffer(handle, UINT64_MAX, NULL, &lease), SHUF_NO_MEMORY,
                  "expected less than 2^63");
    client_expect(handle, take_buffer(handle, UINT64_C(1) << 55, NULL, &lease), SHUF_NO_MEMORY,
                  "the limit is");
    client_expect_ok(handle, take_buffer(handle, 10, &sent, &lease));
    client_expect(handle, shuf_lease_read(handle, lease, 0, 1, &byte), SHUF_INVALID,
                  "a buffer by inline, expected one that is mapped here");
    client_expect(handle, shuf_lease_write(handle, lease, 10, 1, ""), SHUF_INVALID,
                  "offset 10, 1 byte: expected to end within the 10 bytes");
    client_expect(handle, shuf_lease_write(handle, lease, UINT64_MAX, 2, ""), SHUF_INVALID,
                  "offset 1844");
    client_expect_ok(handle, shuf_lease_write(handle, lease, 9, 1, ""));
    client_expect_ok(handle, shuf_lease_write(handle, lease, 10, 0, ""));
    client_expect_ok(handle, take_buffer(handle, 10, NULL, &lease)); /* mapped in this process */
    client_expect(handle, shuf_lease_write(handle, lease, 10, 1, ""), SHUF_INVALID,
                  "offset 10, 1 byte: expected to end within the 10 bytes");
    client_expect_ok(handle, shuf_lease_write(handle, lease, 9, 1, ""));
    assert_string_equal(shuf_message(handle), "");
    shuf_close(handle);
}

struct entry_list {
    shuf_lease_entry entries[4];
    size_t count;
};

static bool add_entry(void *context, const shuf_lease_entry *entry)
{
    struct entry_list *seen = context;
    assert_true(seen->count < 4);
    if (entry->request.kind == SHUF_RECORDS)
        assert_string_equal(entry->request.records.algorithm, "lcg");
    seen->entries[seen->count++] = *entry;
    return true;
}

static void buffers_are_listed(void **state)
{
    (void)state;
    struct entry_list seen = {.count = 0};
    shuf_daemon status;
    shuf *handle = client_open();
    shuf_lease *buffer = NULL, *shuffled = NULL;
    const shuf_records records = {
        .algorithm = "lcg", .n = 50, .record = 20, .seed = 3, .epoch = 4, .inverse = true};
    client_expect_ok(handle, take_buffer(handle, 1001, NULL, &buffer));
    client_expect_ok(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled));
    client_expect_ok(handle, shuf_leases(handle, add_entry, &seen));
    assert_int_equal(seen.count, 2);
    const shuf_lease_entry *b = &seen.entries[0], *s = &seen.entries[1];
    assert_true(b->request.kind == SHUF_BUFFER && b->request.bytes == 1001);
    assert_true(b->ready && b->count == 1001 && b->rows == 1);
    assert_int_equal(b->id, buffer->id);
    const shuf_records *r = &s->request.records;
    assert_true(s->request.kind == SHUF_RECORDS && !r->input);
    assert_true(r->n == 50 && r->record == 20 && r->inverse && r->epoch == 4);
    client_expect_ok(handle, shuf_daemon_status(handle, &status));
    assert_int_equal(status.buffers, 1);
    assert_int_equal(status.leases, 2);
    client_expect_ok(handle,
                     take_buffer(handle, 1001, NULL, &buffer)); /* replaces the old buffer */
    client_expect_ok(handle, shuf_daemon_status(handle, &status));
    assert_int_equal(status.leases, 2);
    client_expect_ok(handle, shuf_lease_release(handle, &buffer));
    client_expect_ok(handle, shuf_daemon_status(handle, &status));
    assert_int_equal(status.buffers, 0);
    shuf_close(handle);
}

/* ---- Daemons that are killed ---- */

static void kill_daemon(void)
{
    assert_true(WIFSIGNALED(harness_kill(&harness_shared, SIGKILL)));
}

static void buffer_is_lost_with_its_daemon(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *buffer = NULL, *shuffled = NULL, *sent = NULL;
    const shuf_records records = {.algorithm = "lcg", .n = 100, .record = 10};
    const shuf_lease_options by_bytes = {.transports = SHUF_INLINE};
    client_expect_ok(handle, take_buffer(handle, 1000, NULL, &buffer));
    client_expect_ok(handle, take_buffer(handle, 1000, &by_bytes, &sent));
    memset(buffer->buffer, 7, 1000);
    kill_daemon();
    assert_true(harness_restart(&harness_shared));
    client_expect(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled), SHUF_NO_DAEMON,
                  "the daemon that held the buffer is gone");
    assert_null(shuffled);
    client_expect(handle, shuf_lease_write(handle, sent, 0, 1, ""), SHUF_NO_DAEMON, "is gone");
    const char *bytes = buffer->data;
    assert_true(bytes[0] == 7 && bytes[999] == 7); /* the mapping stays valid */
    shuf_request permutation = {.permutation = {.n = 10}};
    uint32_t values[10];
    client_expect_ok(handle,
                     /* the next daemon serves this call */
                     shuf_copy(handle, &permutation, values, sizeof values, NULL));
    client_expect(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled), SHUF_NO_DAEMON,
                  "the daemon that held the buffer is gone");
    client_expect_ok(handle, shuf_lease_release(handle, &buffer));
    client_expect_ok(handle, take_buffer(handle, 1000, NULL, &sent));
    client_expect_ok(handle, take_shuffle(handle, &records, sent, NULL, &shuffled));
    shuf_close(handle);
}

/* Another call notices the loss, and finds no next daemon. The later call that needs the buffer
 * still names the cause. */
static void cause_of_a_lost_buffer_stays_known(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *buffer = NULL, *lease = NULL, *shuffled = NULL;
    const shuf_records records = {.n = 250, .record = 4};
    const shuf_request permutation = {.permutation = {.n = 250}};
    client_expect_ok(handle, take_buffer(handle, 1000, NULL, &buffer));
    client_expect_ok(handle, shuf_lease_take(handle, &permutation, NULL, &lease));
    shuf_set_reconnect(handle, 100);
    kill_daemon();
    for (int i = 0; i < 2; i++)
        client_expect(handle, shuf_summarize(handle, &permutation, &(shuf_result){0}),
                      SHUF_NO_DAEMON, i ? "no daemon answers" : "the daemon was lost");
    client_expect(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled), SHUF_NO_DAEMON,
                  "the daemon that held the buffer is gone");
    client_expect(handle, shuf_lease_write(handle, buffer, 0, 1, ""), SHUF_OK, "");
    assert_true(harness_restart(&harness_shared));
    client_expect(handle, take_shuffle(handle, &records, buffer, NULL, &shuffled), SHUF_NO_DAEMON,
                  "and the buffer ended; expected a new buffer");
    client_expect(handle, take_shuffle(handle, &records, lease, NULL, &shuffled), SHUF_NO_DAEMON,
                  "the daemon that held the lease is gone, or it closed the "
                  "connection, and the lease ended; expected a new lease");
    shuf_close(handle);
}

/* If reconnecting is off, a call that loses its daemon fails with NO_DAEMON, even if another daemon
 * listens. */
static void loss_without_reconnecting_is_an_error(void **state)
{
    (void)state;
    const shuf_records records = {.n = 10, .record = 4};
    uint8_t in[40] = {0}, out[40];
    shuf *handle = client_open();
    shuf_set_reconnect(handle, 0);
    client_expect_ok(handle, shuf_shuffle(handle, &records, in, out, 40, NULL));
    kill_daemon();
    assert_true(harness_restart(&harness_shared));
    client_expect(handle, shuf_shuffle(handle, &records, in, out, 40, NULL), SHUF_NO_DAEMON, "");
    /* The next call connects again. */
    client_expect_ok(handle, shuf_shuffle(handle, &records, in, out, 40, NULL));
    shuf_close(handle);
}

/* The daemon is killed while it shuffles. The next daemon gets the records again, and the result is
 * correct. */
static void shuffle_is_repeated_after_loss(void **state)
{
    (void)state;
    random_start("shuffle_is_repeated_after_loss");
    const shuf_records records = {.algorithm = "primefold", .n = 100000, .record = 100, .seed = 5};
    const uint64_t bytes = records.n * records.record;
    uint8_t *in = random_bytes(bytes), *out = malloc(bytes);
    shuf *handle = client_open();
    for (int i = 0; i < 5; i++) {
        const pid_t victim = harness_shared.pid, killer = fork();
        assert_true(killer >= 0);
        if (killer == 0) {
            usleep((useconds_t)random_below(20000));
            kill(victim, SIGKILL);
            _exit(0);
        }
        shuf_set_reconnect(handle, 0);
        shuf_status status = shuf_shuffle(handle, &records, in, out, bytes, NULL);
        if (status != SHUF_OK)
            client_expect(handle, status, SHUF_NO_DAEMON, "");
        else
            check_shuffle(&records, in, out);
        waitpid(killer, NULL, 0);
        harness_kill(&harness_shared, 0);
        assert_true(harness_restart(&harness_shared));
        shuf_set_reconnect(handle, 10000);
        memset(out, 0, bytes);
        client_expect_ok(handle, shuf_shuffle(handle, &records, in, out, bytes, NULL));
        check_shuffle(&records, in, out);
    }
    free(in);
    free(out);
    shuf_close(handle);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_restores_records),
        cmocka_unit_test(large_records_are_shuffled),
        cmocka_unit_test(records_travel_by_socket_without_descriptors),
        cmocka_unit_test(wrong_records_are_refused),
        cmocka_unit_test(buffers_by_host_transports),
        cmocka_unit_test(buffers_by_device_transports),
        cmocka_unit_test(shuffle_uses_current_bytes),
        cmocka_unit_test(results_are_shuffled),
        cmocka_unit_test(wrong_buffers_are_refused),
        cmocka_unit_test(buffers_are_listed),
        cmocka_unit_test(buffer_is_lost_with_its_daemon),
        cmocka_unit_test(cause_of_a_lost_buffer_stays_known),
        cmocka_unit_test(loss_without_reconnecting_is_an_error),
        cmocka_unit_test(shuffle_is_repeated_after_loss),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
