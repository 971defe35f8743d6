/* SPDX-License-Identifier: MIT
 *
 * Blocks that a client may still have mapped. The memory limit counts such a block until no process
 * can have it mapped. Soon after that, the daemon frees it. The daemon does not overwrite such a
 * block if it cannot notify the client.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = UNIT / 4, BYTES = 4 * N };

#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD

static const char *backend;
static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

static int start(void **state)
{
    static struct harness h;
    wire_start(&h, backend, "cache_time = 0\n");
    *state = &h;
    return 0;
}

static int start_cached(void **state)
{
    static struct harness h;
    *state = harness_start(&h, backend, NULL) ? &h : NULL;
    return *state ? 0 : -1;
}

static int stop(void **state)
{
    return harness_stop(*state) ? 0 : -1;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- blocks are charged until unmapped ------------------------------------------------ */

static void expect_pending_free(const struct harness *h)
{
    usleep(100000); /* the daemon sweeps several times meanwhile */
    Shuf__StatusReply s = wire_status(h);
    assert_true(s.leases == 0 && s.pending_free == 1 && s.blocks == 1);
    assert_int_equal(s.host_used, UNIT);
}

/* Waits until the memory is free. *late counts the waits above 100 ms: a busy machine may have a
 * few. */
static void await_memory_free(const struct harness *h, unsigned *late)
{
    uint64_t began = now_ms();
    WIRE_AWAIT(h, s,
               s.host_used == 0 && s.memory_used == 0 && s.blocks == 0 && s.pending_free == 0);
    *late += now_ms() - began > (TEST_SANITIZED ? 2000 : 100);
}

enum { ROUNDS = 4 };

/* Maps a result, releases the lease without a report of the unmapping, and closes the connection.
 * Returns the mapping. */
static const void *map_and_close(const struct harness *h)
{
    struct wire *w = wire_greet(h);
    uint64_t id = wire_lease(w, N, 7, HOST)->lease;
    const void *view = wire_map(w, UNIT);
    wire_release(w, id, 0);
    wire_close(w);
    return view;
}

static void block_is_free_after_client_unmaps(void **state)
{
    unsigned late = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const void *view = map_and_close(*state);
        expect_pending_free(*state);
        wire_unmap(view, UNIT); /* the daemon gets no report of this */
        await_memory_free(*state, &late);
    }
    assert_true(late <= ROUNDS / 2);
}

static void block_is_free_after_client_closes_descriptor(void **state)
{
    unsigned late = 0;
    struct wire *w = wire_greet(*state);
    for (int i = 0; i < ROUNDS; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, N, 7, HOST);
        uint64_t id = reply->lease, block = reply->block;
        int fd = wire_take_descriptor(w);
        wire_release(w, id, block); /* a false report: the descriptor is still open */
        expect_pending_free(*state);
        close(fd);
        await_memory_free(*state, &late);
    }
    wire_close(w);
    assert_true(late <= ROUNDS / 2);
}

/* To ask about a block and to free it takes time, and other users wait for a step of the loop. */
static void many_blocks_are_freed_in_steps(void **state)
{
    enum { COUNT = 300, STEP = 32 };
    const struct harness *h = *state;
    struct wire *w = wire_greet(h);
    int fd[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t id = wire_lease(w, 1000, i, HOST)->lease;
        fd[i] = wire_take_descriptor(w);
        wire_release(w, id, 0);
    }
    assert_int_equal(wire_ask_status(w)->pending_free, COUNT);
    kill(h->pid, SIGSTOP);
    for (unsigned i = 0; i < COUNT; i++)
        close(fd[i]);
    wire_send_release_all(w);
    Shuf__Status status = SHUF__STATUS__INIT; /* sent now: the daemon handles it after a step */
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    wire_send(w, &request);
    kill(h->pid, SIGCONT);
    w->id--; /* of the release */
    wire_expect(w, SHUF_OK, "");
    w->id++;
    assert_in_range(wire_expect(w, SHUF_OK, "")->status_reply->pending_free, 1, COUNT - STEP);
    WIRE_AWAIT(h, s, s.host_used == 0 && s.blocks == 0 && s.pending_free == 0);
    wire_close(w);
}

static void fork_with_mapping(int channel, void *context)
{
    map_and_close(context);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        child_send(channel, (uint64_t)getpid());
        pause();
        _exit(0);
    }
    pause();
}

static void block_is_free_after_forked_child_dies(void **state)
{
    unsigned late = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct child child = child_start(fork_with_mapping, *state);
        pid_t grandchild = (pid_t)child_receive(child.channel);
        expect_pending_free(*state);
        child_kill(&child);
        expect_pending_free(*state);
        kill(grandchild, SIGKILL);
        await_memory_free(*state, &late);
    }
    assert_true(late <= ROUNDS / 2);
}

static void lease_and_wait(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    uint64_t id = wire_lease(w, N, 7, backend_transport)->lease;
    wire_take_descriptor(w); /* keeps the descriptor open */
    wire_lease(w, N, 8, backend_transport);
    wire_release(w, id, 0);
    child_send(channel, 0);
    pause();
}

/* When a process dies, the kernel closes its descriptors and removes its mappings. So the daemon
 * frees both kinds of memory. */
static void blocks_are_free_after_client_dies(void **state)
{
    unsigned late = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct child child = child_start(lease_and_wait, *state);
        child_receive(child.channel);
        WIRE_AWAIT((struct harness *)*state, s, s.blocks == 2 && s.leases == 1);
        assert_int_equal(wire_status(*state).pending_free, 1);
        child_kill(&child);
        await_memory_free(*state, &late);
    }
    assert_true(late <= ROUNDS / 2);
}

/* When a connection ends, its process may still have device memory mapped, so the daemon does not
 * free it. */
static void device_block_stays_after_client_disconnects(void **state)
{
    struct wire *w = wire_greet(*state);
    bool host = backend_transport == HOST;
    const Shuf__ResultReply *reply = wire_lease(w, N, 7, backend_transport);
    uint64_t id = reply->lease, block = reply->block;
    wire_release(w, id, block); /* a connected client's report of an unmapping is trusted */
    WIRE_AWAIT((struct harness *)*state, s, s.blocks == 0);
    wire_lease(w, N, 8, backend_transport);
    wire_close(w);
    WIRE_AWAIT((struct harness *)*state, s, s.leases == 0 && s.blocks == s.pending_free);
    usleep(100000);
    assert_int_equal(wire_status(*state).blocks, host ? 0 : 1);
}

/* ---- blocks that a detached process may have mapped are not overwritten ------------- */

/* Takes more results of one size than the daemon keeps idle. None of them may be in `block`. */
static void lease_all_other_blocks(const struct harness *h, uint64_t block,
                                   Shuf__Transport transport)
{
    struct wire *w = wire_greet(h);
    for (uint64_t seed = 1000; seed < 1100; seed++) {
        const Shuf__ResultReply *reply = wire_lease(w, N, seed, transport);
        assert_int_not_equal(reply->block, block);
        wire_release(w, reply->lease, reply->block);
    }
    wire_close(w);
}

static void check_mapped_block_is_not_reused(const struct harness *h)
{
    struct wire *w = wire_greet(h);
    const Shuf__ResultReply *reply = wire_lease(w, N, 7, HOST);
    uint64_t block = reply->block, id = reply->lease;
    void *copy = malloc(BYTES);
    const void *view = wire_map(w, UNIT);
    memcpy(copy, view, BYTES);
    wire_release(w, id, 0);
    wire_close(w);
    WIRE_AWAIT(h, s, s.clients == 1);
    lease_all_other_blocks(h, block, HOST);
    assert_memory_equal(view, copy, BYTES);
    wire_unmap(view, UNIT);
    free(copy);
}

static void block_mapped_by_detached_process_is_not_reused(void **state)
{
    check_mapped_block_is_not_reused(*state);
}

/* The daemon runs in a PID namespace of its own, and cannot see this process. */
static void serve_from_pid_namespace(int channel, void *context)
{
    struct harness h;
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    (void)channel;
    (void)context;
    assert_int_equal(unshare(CLONE_NEWPID), 0); /* the children are in the new namespace */
    assert_true(harness_start(&h, backend, NULL));
    check_mapped_block_is_not_reused(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void block_mapped_from_other_pid_namespace_is_not_reused(void **state)
{
    (void)state;
    if (geteuid() != 0 || backend_transport != HOST) /* CUDA does not start in such a namespace */
        skip();
    struct child child = child_start(serve_from_pid_namespace, NULL);
    child_join(&child);
}

/* Clients end without releasing their leases. The daemon then keeps only its usual number of idle
 * blocks. */
static void reconnecting_clients_leave_no_blocks(void **state)
{
    const struct harness *h = *state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct wire *w = wire_greet(h);
        wire_lease(w, 1000, seed, HOST);
        wire_close(w);
    }
    WIRE_AWAIT(h, s, s.leases == 0 && s.pending_free == 0);
    uint64_t blocks = wire_status(h).blocks;
    if (blocks > 70)
        fail_msg("%d blocks, expected about 64: the daemon keeps so many of one size", (int)blocks);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(block_is_free_after_client_unmaps, start, stop),
        cmocka_unit_test_setup_teardown(block_is_free_after_client_closes_descriptor, start, stop),
        cmocka_unit_test_setup_teardown(many_blocks_are_freed_in_steps, start, stop),
        cmocka_unit_test_setup_teardown(block_is_free_after_forked_child_dies, start, stop),
        cmocka_unit_test_setup_teardown(blocks_are_free_after_client_dies, start, stop),
        cmocka_unit_test_setup_teardown(device_block_stays_after_client_disconnects, start, stop),
        cmocka_unit_test_setup_teardown(block_mapped_by_detached_process_is_not_reused,
                                        start_cached, stop),
        cmocka_unit_test(block_mapped_from_other_pid_namespace_is_not_reused),
        cmocka_unit_test_setup_teardown(reconnecting_clients_leave_no_blocks, start_cached, stop),
    };
    backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(backend);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
