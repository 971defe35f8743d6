/* SPDX-License-Identifier: MIT
 *
 * Memory that clients hold until another request needs it: results of clients that do not read, and
 * blocks that a process keeps mapped without a lease. The daemon closes the connections of the
 * first; libshuf connects again, and continues at the first missing value. Mapped blocks have a
 * limit. An error names the process that has them, and the process unmaps them at its next call.
 */
#include "shuf.h"
#include "support/bystander.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/take.h"
#include "support/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Clients that do not read ---- */

enum {
    CLIENTS = 6,
    N = 2500000,        /* 10 MiB */
    LARGE_N = 12 << 20, /* 48 MiB */
};

static struct harness h;

static int start(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "host_memory = 64Mi\ndevice_memory = 64Mi\n");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

/* Takes and releases a lease that needs most of the memory. Retries until the daemon has room. */
static void take_large_lease(void)
{
    shuf *handle;
    shuf_lease *lease = NULL;
    shuf_status status;
    const shuf_request p = {.permutation = {.n = LARGE_N, .seed = 7}};
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    const shuf_lease_options own = {
        .transports = strcmp(harness_backend, "cpu") == 0 ? SHUF_MEMFD : SHUF_CUDA_IPC};
    for (unsigned waited = 0; (status = shuf_lease_take(handle, &p, &own, &lease)) == SHUF_BUSY;)
        wire_wait(&waited, "room for the large lease");
    assert_int_equal(status, SHUF_OK);
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    shuf_close(handle);
}

/* Returns the number of bytes until the end of the connection. */
static uint64_t read_to_end(int fd)
{
    static char bytes[1 << 16];
    uint64_t sum = 0;
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        sum += (uint64_t)got;
    assert_true(got == 0 || errno == ECONNRESET);
    return sum;
}

/* All clients stop reading. A bystander is served beside them, and a large lease then cuts most of
 * them off. `results` is the number of different results: with 1, all clients share it. */
static void check_clients_are_closed(unsigned results)
{
    struct wire *clients[CLIENTS];
    const uint64_t n = (uint64_t)N * CLIENTS / results;
    struct wire *bystander = wire_greet(&h);
    const struct latency idle = bystander_measure("idle", bystander);
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = wire_greet(&h);
        permute.permutation.seed = 100 + (uint64_t)i % results;
        wire_send_result(clients[i], &permute);
        wire_expect(clients[i], SHUF_OK, "");
    }
    bystander_expect_near("clients that do not read", bystander, &idle);
    wire_close(bystander);
    assert_true(wire_status(&h).memory_used >= CLIENTS * UINT64_C(4) * N);
    take_large_lease();
    unsigned closed_count = 0;
    for (int i = 0; i < CLIENTS; i++) {
        shutdown(clients[i]->fd, SHUT_WR);
        closed_count += read_to_end(clients[i]->fd) < 4 * n;
        wire_close(clients[i]);
    }
    assert_in_range(closed_count, 4, CLIENTS);
}

static void clients_that_do_not_read_are_closed(void **state)
{
    (void)state;
    check_clients_are_closed(CLIENTS);
}

static void clients_of_one_result_are_closed(void **state)
{
    (void)state;
    check_clients_are_closed(1);
}

/* A lease would not fit even if the daemon closed the slow connection. So the daemon refuses the
 * lease, and closes no connection. */
static void no_client_is_closed_in_vain(void **state)
{
    (void)state;
    struct wire *slow = wire_greet(&h), *w = wire_greet(&h);
    const Shuf__Transport own = wire_backend_transport(harness_backend);
    wire_lease(w, 2 * LARGE_N / 3, 1, own); /* 32 MiB */
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(slow, &permute);
    const uint64_t bytes = wire_expect(slow, SHUF_OK, "")->payload_bytes;
    usleep(1500000); /* a client counts as slow after one second */
    permute = wire_permutation(LARGE_N, own);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_BUSY, "");
    wire_read_permutation(slow, bytes, N);
    wire_close(slow);
    wire_close(w);
}

struct slow_sink {
    uint64_t values;
    uint32_t *to;
    bool has_taken;
};

/* Stops reading in the middle, and takes a large lease meanwhile. */
static bool read_slowly(void *context, const void *bytes, size_t size)
{
    struct slow_sink *sink = context;
    memcpy(sink->to + sink->values, bytes, size);
    sink->values += size / sizeof(uint32_t);
    if (!sink->has_taken && sink->values > N / 4)
        take_large_lease();
    sink->has_taken = sink->values > N / 4;
    return true;
}

static void libshuf_continues_after_close(void **state)
{
    (void)state;
    enum { SLOW_N = 2 * N }; /* 20 MiB, which do not fit beside the large lease */
    static uint32_t slowly[SLOW_N], whole[SLOW_N];
    shuf *handle;
    struct slow_sink sink = {.to = slowly};
    const shuf_request p = {.permutation = {.n = SLOW_N, .seed = 3}};
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    assert_int_equal(shuf_each(handle, &p, read_slowly, &sink, NULL), SHUF_OK);
    assert_true(sink.has_taken);
    assert_int_equal(sink.values, SLOW_N);
    assert_int_equal(shuf_copy(handle, &p, whole, sizeof whole, NULL), SHUF_OK);
    assert_memory_equal(slowly, whole, sizeof whole);
    shuf_close(handle);
}

/* ---- Mapped blocks ---- */

#define MI (UINT64_C(1) << 20)
enum { LEASES = 24, MAPPED_N = 1 << 19 }; /* each in a block of 2 MiB */

static shuf *idle_client, *other;

static shuf_request small_request(uint64_t epoch)
{
    return (shuf_request){.permutation = {.n = MAPPED_N, .seed = 7, .epoch = epoch}};
}

static shuf_user own_usage(void)
{
    shuf_daemon daemon;
    assert_int_equal(shuf_daemon_status(other, &daemon), SHUF_OK);
    for (unsigned i = 0; i < daemon.users; i++)
        if (daemon.user[i].uid == geteuid())
            return daemon.user[i];
    return (shuf_user){0};
}

/* Takes LEASES leases at once, and then releases them. */
static void take_and_release(shuf *handle)
{
    shuf_lease *leases[LEASES] = {NULL};
    for (uint64_t i = 0; i < LEASES; i++) {
        const shuf_request request = small_request(i);
        assert_int_equal(shuf_lease_take(handle, &request, NULL, &leases[i]), SHUF_OK);
    }
    for (int i = 0; i < LEASES; i++)
        assert_int_equal(shuf_lease_release(handle, &leases[i]), SHUF_OK);
}

static shuf_status take_most(shuf_lease **lease)
{
    shuf_daemon daemon;
    assert_int_equal(shuf_daemon_status(other, &daemon), SHUF_OK);
    return take_buffer(other, daemon.host_limit - 4 * MI, NULL, lease);
}

static void few_idle_blocks_stay_mapped(void **state)
{
    (void)state;
    take_and_release(idle_client);
    const shuf_user use = own_usage();
    assert_in_range(use.mapped, 2 * MI, 16 * MI);
    assert_int_equal(use.mapped_pid, getpid());
}

static void refusal_names_process_with_mappings(void **state)
{
    (void)state;
    char words[128];
    shuf_lease *lease = NULL;
    take_and_release(idle_client);
    snprintf(words, sizeof words,
             "16 MiB of these have no lease but are still mapped, most of them by process %d: its "
             "next call or its end frees them; try again",
             (int)getpid());
    client_expect(other, take_most(&lease), SHUF_BUSY, words);
}

/* The daemon asks for the memory in its next reply to the process, in the reply to any call. The
 * first call here maps no block. The second call maps a block that the client has kept. */
static void next_call_unmaps_idle_blocks(void **state)
{
    (void)state;
    for (int with_lease = 0; with_lease < 2; with_lease++) {
        shuf_lease *large = NULL, *lease = NULL;
        const shuf_request request = small_request(LEASES - 1);
        take_and_release(idle_client);
        assert_int_equal(take_most(&large), SHUF_BUSY);
        if (with_lease)
            assert_int_equal(shuf_lease_take(idle_client, &request, NULL, &lease), SHUF_OK);
        else
            assert_int_equal(shuf_index(idle_client, &request.permutation, SHUF_FORWARD,
                                        &(uint64_t){1}, 1, &(uint64_t){0}),
                             SHUF_OK);
        assert_int_equal(own_usage().mapped, 0);
        if (with_lease) {
            static uint32_t values[MAPPED_N];
            assert_int_equal(shuf_copy(other, &request, values, sizeof values, NULL), SHUF_OK);
            assert_memory_equal(lease->data, values, sizeof values);
        }
        assert_int_equal(shuf_lease_release(idle_client, &lease), SHUF_OK);
        assert_int_equal(take_most(&large), SHUF_OK);
        assert_int_equal(shuf_lease_release(other, &large), SHUF_OK);
    }
}

static void drop_requests_unmapping(void **state)
{
    (void)state;
    shuf_dropped dropped;
    shuf_daemon ignored;
    take_and_release(idle_client);
    assert_int_equal(shuf_drop(other, SHUF_OWN, 0, &dropped), SHUF_OK);
    assert_int_equal(dropped.mapped_bytes, 16 * MI);
    assert_int_equal(shuf_daemon_status(idle_client, &ignored), SHUF_OK);
    assert_int_equal(own_usage().mapped, 0);
}

/* A forked child keeps the memory mapped. The daemon knows only that some process has it mapped. */
static void mapping_of_forked_child_has_no_name(void **state)
{
    (void)state;
    int end[2], status;
    shuf_daemon ignored;
    take_and_release(idle_client);
    assert_int_equal(pipe(end), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(end[1]);
        _exit(read(end[0], &byte, 1) != 0);
    }
    close(end[0]);
    assert_int_equal(shuf_drop(other, SHUF_OWN, 0, NULL), SHUF_OK);
    assert_int_equal(shuf_daemon_status(idle_client, &ignored), SHUF_OK);
    assert_int_equal(own_usage().mapped, 16 * MI);
    assert_int_equal(own_usage().mapped_pid, 0);
    shuf_lease *lease = NULL;
    client_expect(other, take_most(&lease), SHUF_BUSY, "still mapped by processes: their next");
    close(end[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(own_usage().mapped, 0);
}

static int start_mapped(void **state)
{
    static const char *const limited[] = {"--host-memory", "128Mi", NULL};
    (void)state;
    if (!harness_start(&harness_shared, harness_backend, limited))
        return -1;
    idle_client = client_open();
    other = client_open();
    return 0;
}

static int stop_mapped(void **state)
{
    shuf_close(idle_client);
    shuf_close(other);
    return harness_stop_shared(state);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clients_that_do_not_read_are_closed, start, stop),
        cmocka_unit_test_setup_teardown(clients_of_one_result_are_closed, start, stop),
        cmocka_unit_test_setup_teardown(no_client_is_closed_in_vain, start, stop),
        cmocka_unit_test_setup_teardown(libshuf_continues_after_close, start, stop),
        cmocka_unit_test_setup_teardown(few_idle_blocks_stay_mapped, start_mapped, stop_mapped),
        cmocka_unit_test_setup_teardown(refusal_names_process_with_mappings, start_mapped,
                                        stop_mapped),
        cmocka_unit_test_setup_teardown(next_call_unmaps_idle_blocks, start_mapped, stop_mapped),
        cmocka_unit_test_setup_teardown(drop_requests_unmapping, start_mapped, stop_mapped),
        cmocka_unit_test_setup_teardown(mapping_of_forked_child_has_no_name, start_mapped,
                                        stop_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
