/* SPDX-License-Identifier: MIT
 *
 * The server with a device whose memory the host cannot read, and with a device that fails.
 */
#include "net/outbox.h"
#include "shuf/fingerprint.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static void start(struct harness *h)
{
    static const char *const no_options[] = {NULL};
    fake_backend_start(h, no_options);
}

static void kill_and_expect_exit(struct harness *h, int signal, int code, const char *text)
{
    char log[8192];
    int status = harness_kill(h, signal);
    FILE *file = fopen(h->log, "re");
    assert_non_null(file);
    log[fread(log, 1, sizeof log - 1, file)] = '\0';
    fclose(file);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(log, text))
        fail_msg("expected exit %d with \"%s\", got wait status 0x%x with \"%s\"", code, text,
                 (unsigned)status, log);
    assert_true(harness_stop(h));
}

/* ---- tests ---- */

/* Compares the n received values with the fingerprint, which the device computed from its
 * memory. */
static void check_values(struct wire *w, uint64_t n)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    uint32_t *values = malloc(n * sizeof *values);
    uint64_t sum = 0;
    assert_non_null(values);
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    uint64_t fingerprint = reply->result->fingerprint;
    assert_int_equal(reply->payload_bytes, n * sizeof *values);
    wire_read_payload(w, values, n * sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        sum += shuf_fingerprint_term(i, values[i]);
    free(values);
    assert_int_equal(sum, fingerprint);
}

static void test_chunks_of_device_memory(void **state)
{
    (void)state;
    enum { PER_CHUNK = SHUF__PAYLOAD_CHUNK / 4 };
    static const uint64_t sizes[] = {1,
                                     10,
                                     PER_CHUNK - 1,
                                     PER_CHUNK,
                                     PER_CHUNK + 1,
                                     2 * PER_CHUNK,
                                     2 * PER_CHUNK + 1,
                                     3 * PER_CHUNK,
                                     40 * PER_CHUNK + 7};
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_values(w, sizes[i]);
    wire_check_alive(w);
    wire_close(w);
    wire_await_memory_free(&h);
    assert_true(harness_stop(&h));
}

/* The fake device keeps its memory in host memory, so the results count as host memory. */
static void test_unread_results(void **state)
{
    (void)state;
    struct harness h;
    start(&h);
    wire_check_unread_results(&h, true);
    assert_true(harness_stop(&h));
}

static void test_client_leaves_during_read(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message permute =
        wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults->read_us = 20000;
    start(&h);
    for (int i = 0; i < 10; i++) {
        struct wire *w = wire_greet(&h);
        wire_send_result(w, &permute);
        wire_expect(w, SHUF_OK, "");
        usleep((useconds_t)i * 4000);
        wire_close(w);
    }
    wire_await_memory_free(&h);
    assert_true(harness_stop(&h));
}

/* Returns a client with a pending job. Before the job, the client sent more requests than one
 * iteration of the loop serves. */
static struct wire *begin_after_requests(const struct harness *h)
{
    enum { REQUESTS = 17 };
    uint8_t bytes[(REQUESTS + 1) * 64];
    size_t used = 0;
    Shuf__Status status = SHUF__STATUS__INIT;
    struct shuf__result_message permute =
        wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct wire *w = wire_greet(h);
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    for (int i = 0; i < REQUESTS; i++)
        used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(&permute);
    used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    wire_send_bytes(w, bytes, used);
    return w;
}

/* Returns a client with a pending job. Before the job, the client received a result that exceeds
 * the socket's buffer, so the loop has waited for room in the socket. */
static struct wire *begin_after_large_result(const struct harness *h)
{
    enum { N = 1 << 20 };
    static uint32_t values[N];
    struct shuf__result_message inline_permute =
        wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    struct shuf__result_message last = wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_greet(h);
    wire_send_result(w, &inline_permute);
    wire_send_result(w, &last);
    w->id--;
    wire_expect(w, SHUF_OK, "");
    wire_read_payload(w, values, sizeof values);
    return w;
}

static double cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The loop sleeps while a job runs: the daemon uses almost no time of the CPU. */
static void test_loop_sleeps_while_computing(void **state)
{
    (void)state;
    static struct wire *(*const begin[])(const struct harness *) = {begin_after_requests,
                                                                    begin_after_large_result};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++) {
        struct harness h;
        start(&h);
        struct wire *w = begin[i](&h);
        wire_await_queued(&h, 1);
        double before = cpu_seconds(h.pid);
        usleep(500000);
        assert_true(cpu_seconds(h.pid) < before + 0.1);
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

/* SIGTERM while the client reads a result in chunks: the daemon sends all chunks before it ends. */
static void test_drain_sends_all_chunks(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static uint32_t values[N];
    struct harness h;
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults->read_us = 1000;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    kill(h.pid, SIGTERM);
    wire_read_payload(w, values, sizeof values);
    wire_expect_end(w);
    wire_close(w);
    kill_and_expect_exit(&h, 0, EX_OK, "");
}

static void test_device_fails(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    faults->permute_fails = true;
    start(&h);
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_DEVICE, "the device is on fire");
    wire_expect_end(w);
    wire_expect_end(other);
    wire_close(w);
    wire_close(other);
    kill_and_expect_exit(&h, 0, EX_IOERR,
                         "the device failed, ending: permute: the device is on fire");
}

/* Checks the first bytes of the permutation of n that wire_permutation() requests. */
static void expect_values(const uint8_t *bytes, size_t size, uint64_t n)
{
    shuf_primefold f = shuf_primefold_make(n, 7, 0);
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t value;
        memcpy(&value, bytes + at, sizeof value);
        assert_int_equal(value, shuf_primefold_forward(&f, at / 4));
    }
}

static void test_device_fails_during_payload(void **state)
{
    (void)state;
    struct harness h;
    enum { MOST = 1 << 20 };
    static uint8_t bytes[MOST + 1];
    size_t got = 0;
    ssize_t part;
    struct shuf__result_message permute =
        wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults->read_fails_from = MOST;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    while (got < sizeof bytes && (part = recv(w->fd, bytes + got, sizeof bytes - got, 0)) > 0)
        got += (size_t)part;
    assert_in_range(got, 1, MOST); /* the bytes end early, and no wrong byte was sent */
    expect_values(bytes, got, permute.permutation.n);
    wire_close(w);
    kill_and_expect_exit(&h, 0, EX_IOERR, "the device failed, ending: read: the device is on fire");
}

/* A client gets a lease with an event before the result is computed. It may shuffle that result at
 * once: the engine completes the computation first, even if the shuffle is small. */
static void test_shuffle_of_result_being_computed(void **state)
{
    (void)state;
    struct harness h;
    Shuf__Transport ipc = SHUF__TRANSPORT__TRANSPORT_CUDA_IPC;
    struct shuf__result_message permute = wire_permutation(1 << 20, ipc);
    struct shuf__result_message shuffle = wire_result(SHUF__RESULT__WHAT_SHUFFLE, ipc);
    permute.delivery.event = true;
    faults->is_gpu = true;
    faults->wait_us = 200000;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_int_equal(reply->ipc_event.len, SHUF__IPC_HANDLE);
    usleep(50000); /* the lane waits for the permutation; the shuffle would be sooner */
    faults->wait_us = 0;
    shuffle.permutation.n = 1000;
    shuffle.shuffle.record = 4;
    shuffle.permutation.seed = 3;
    shuffle.shuffle.lease = reply->lease;
    wire_send_result(w, &shuffle);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->result->record, 4);
    assert_int_equal(seen->launches, 2);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_device_hangs(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    faults->hangs = true;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    kill_and_expect_exit(&h, SIGTERM, EX_SOFTWARE, "the device does not stop");
    wire_close(w);
}

/* A prefetch has filled device memory. A summary and an inline copy use that result, so the device
 * computes only once. */
static void test_result_in_device_memory_is_reused(void **state)
{
    (void)state;
    enum { N = 3000000 };
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    struct shuf__result_message prefetch = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    prefetch.delivery.prefetch = true;
    wire_send_result(w, &prefetch);
    wire_expect(w, SHUF_OK, "");
    struct shuf__result_message summary = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_NONE);
    summary.delivery.fingerprint = true;
    wire_send_result(w, &summary);
    assert_true(wire_expect(w, SHUF_OK, "")->result->shared);
    assert_int_equal(seen->launches, 1);
    check_values(w, N);
    assert_int_equal(seen->launches, 1);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_no_device(void **state)
{
    (void)state;
    struct harness h;
    int status = fake_backend_start_without_device(&h);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_UNAVAILABLE);
    assert_true(access(h.socket, F_OK) != 0);
    assert_true(harness_stop(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_chunks_of_device_memory, fake_backend_reset),
        cmocka_unit_test_setup(test_unread_results, fake_backend_reset),
        cmocka_unit_test_setup(test_client_leaves_during_read, fake_backend_reset),
        cmocka_unit_test_setup(test_loop_sleeps_while_computing, fake_backend_reset),
        cmocka_unit_test_setup(test_drain_sends_all_chunks, fake_backend_reset),
        cmocka_unit_test_setup(test_device_fails, fake_backend_reset),
        cmocka_unit_test_setup(test_device_fails_during_payload, fake_backend_reset),
        cmocka_unit_test_setup(test_shuffle_of_result_being_computed, fake_backend_reset),
        cmocka_unit_test_setup(test_device_hangs, fake_backend_reset),
        cmocka_unit_test_setup(test_result_in_device_memory_is_reused, fake_backend_reset),
        cmocka_unit_test_setup(test_no_device, fake_backend_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
