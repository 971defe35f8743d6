/* SPDX-License-Identifier: MIT
 *
 * Blocks that a client may still have mapped, or keeps by an O_PATH descriptor. The memory limit
 * counts such a block until no process can have it mapped, and soon after that the daemon frees it.
 * The daemon does not overwrite such a block if it cannot notify the client.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = UNIT / 4, BYTES = 4 * N };

#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD

static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

/* ---- Blocks are charged until unmapped ---- */

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
    uint64_t began = harness_now_ms();
    WIRE_AWAIT(h, s,
               s.host_used == 0 && s.memory_used == 0 && s.blocks == 0 && s.pending_free == 0);
    *late += harness_now_ms() - began > (TEST_SANITIZED ? 2000 : 100);
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

/* ---- Blocks that a detached process may have mapped are not overwritten ---- */

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
    assert_true(harness_start(&h, harness_backend, NULL));
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

/* ---- O_PATH descriptors, which file leases do not count ---- */

#define MI (UINT64_C(1) << 20)
#define MEMFD SHUF__TRANSPORT__TRANSPORT_MEMFD

enum {
    KEPT_N = 4 << 20, /* values of 16 MiB: four results fit */
    USER_UID = 61000,
    USER_N = 10 << 20 /* values of 40 MiB; such a user may have 42 MiB */
};

static struct harness h;

static int start_small(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "cache_time = 0\nhost_memory = 64Mi\n");
    return 0;
}

/* Released results stay in the cache, until a request needs their memory. */
static int start_with_cache(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "host_memory = 64Mi\nhost_cache = 64Mi\nsocket_mode = 0666\n");
    assert_int_equal(chmod(h.directory, 0755), 0);
    return 0;
}

static int stop_small(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

static int open_path(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int kept = open(path, O_PATH | O_CLOEXEC);
    assert_true(kept >= 0);
    return kept;
}

/* Returns an O_PATH descriptor of a block, whose lease and other descriptors are gone. */
static int keep_result(struct wire *w, uint64_t seed)
{
    const Shuf__ResultReply *reply = wire_lease(w, KEPT_N, seed, MEMFD);
    const uint64_t lease = reply->lease, block = reply->block;
    const int fd = wire_take_descriptor(w), kept = open_path(fd);
    close(fd);
    wire_release(w, lease, block);
    return kept;
}

static int keep_buffer(struct wire *w)
{
    struct shuf__result_message allocate = wire_result(SHUF__RESULT__WHAT_BUFFER, MEMFD);
    allocate.buffer.bytes = 16 * MI;
    wire_send_result(w, &allocate);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    const uint64_t lease = reply->lease, block = reply->block;
    const int fd = wire_take_descriptor(w), kept = open_path(fd);
    assert_true(pwrite(fd, "x", 1, 0) == 1);
    close(fd);
    wire_release(w, lease, block);
    return kept;
}

static void expect_charged(uint64_t bytes)
{
    usleep(100000); /* the daemon sweeps several times meanwhile */
    WIRE_AWAIT(&h, s, s.host_used == bytes);
    usleep(100000);
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.host_used, bytes);
    assert_int_equal(s.leases, 0);
}

static void kept_memory_stays_charged(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&h);
    const int kept[] = {keep_result(w, 1), keep_buffer(w)};
    expect_charged(32 * MI);
    wire_close(w);
    expect_charged(32 * MI);
    close(kept[0]);
    expect_charged(16 * MI);
    close(kept[1]);
    expect_charged(0);
}

/* No process has the descriptor: it is in a message that nobody has received. */
static void memory_kept_in_a_message_stays_charged(void **state)
{
    (void)state;
    int ends[2];
    struct wire *w = wire_greet(&h);
    const int kept = keep_result(w, 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(wire_try_descriptors(ends[0], "", 1, &kept, 1, 0), 1);
    close(kept);
    wire_close(w);
    expect_charged(16 * MI);
    close(ends[0]);
    close(ends[1]);
    expect_charged(0);
}

static void kept_memory_fills_the_budget(void **state)
{
    (void)state;
    int kept[4];
    struct wire *w = wire_greet(&h);
    for (int i = 0; i < 4; i++) {
        kept[i] = keep_result(w, 1 + (uint64_t)i);
        expect_charged((uint64_t)(i + 1) * 16 * MI);
    }
    struct shuf__result_message permute = wire_permutation(KEPT_N, MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_BUSY, "64 MiB of these have no lease but are still mapped");
    for (int i = 0; i < 4; i++)
        close(kept[i]);
    expect_charged(0);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

/* Requests a result whose memory is that of idle results. If a client keeps these, the daemon must
 * not lend their memory again, not even once. */
static void kept_results_make_no_room(void **state)
{
    int kept[3];
    (void)state;
    struct wire *w = wire_greet(&h);
    for (int i = 0; i < 3; i++)
        kept[i] = keep_result(w, 1 + (uint64_t)i);
    struct shuf__result_message permute = wire_permutation(4 * KEPT_N, MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_BUSY, "in use by other results");
    expect_charged(48 * MI);
    for (int i = 0; i < 3; i++)
        close(kept[i]);
    expect_charged(0);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

/* The request waits until the memory is free. */
static void results_make_room(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&h);
    for (uint64_t i = 0; i < 3; i++)
        close(keep_result(w, 1 + i));
    struct shuf__result_message permute = wire_permutation(4 * KEPT_N, MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_status(&h).host_used, 64 * MI);
    wire_close(w);
}

/* The job of a summary waits for its workspace in the same way, and then succeeds. */
static void results_make_room_for_summaries(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&h);
    for (uint64_t i = 0; i < 4; i++)
        close(keep_result(w, 1 + i));
    struct shuf__result_message permute =
        wire_permutation(8 * KEPT_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_close(w);
}

static void keep_as_user(int channel, void *context)
{
    (void)context;
    if (setgid(USER_UID) || setuid(USER_UID))
        abort();
    struct wire *w = wire_greet(&h);
    const int kept[] = {keep_result(w, 1), keep_result(w, 2)};
    struct shuf__result_message permute = wire_permutation(USER_N, MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_BUSY, "user 61000 may hold 42 MiB, and holds");
    close(kept[0]);
    close(kept[1]);
    child_send(channel, 1);
    wire_close(w);
}

/* There is room in the daemon, but the user has its part already. */
static void kept_results_count_for_their_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct child child = child_start(keep_as_user, NULL);
    assert_int_equal(child_receive(child.channel), 1);
    child_join(&child);
    expect_charged(0);
}

static void keep_until_killed(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    keep_result(w, 1);
    child_send(channel, 1);
    pause();
}

static void death_of_process_frees_kept_memory(void **state)
{
    (void)state;
    struct child child = child_start(keep_until_killed, &h);
    assert_int_equal(child_receive(child.channel), 1);
    expect_charged(16 * MI);
    child_kill(&child);
    expect_charged(0);
}

/* The daemon can end while a client still keeps memory. */
static void daemon_ends_despite_kept_memory(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&h);
    const int kept = keep_result(w, 1);
    expect_charged(16 * MI);
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    close(kept);
}

/* One block is kept, while thousands of others are freed at once. */
static void watch_survives_many_frees(void **state)
{
    (void)state;
    enum { BLOCKS = 4000 };
    struct wire *w = wire_greet(&h);
    const int kept = keep_result(w, 1);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        wire_lease(w, 1000, 1 + i, MEMFD);
        close(wire_take_descriptor(w));
    }
    wire_close(w);
    expect_charged(16 * MI);
    close(kept);
    expect_charged(0);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, start_small, stop_small)
#define ROW_WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, start_with_cache, stop_small)

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(harness_backend);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(block_is_free_after_client_unmaps, wire_start_uncached,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(block_is_free_after_client_closes_descriptor,
                                        wire_start_uncached, wire_stop_each),
        cmocka_unit_test_setup_teardown(many_blocks_are_freed_in_steps, wire_start_uncached,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(block_is_free_after_forked_child_dies, wire_start_uncached,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(blocks_are_free_after_client_dies, wire_start_uncached,
                                        wire_stop_each),
        cmocka_unit_test_setup_teardown(device_block_stays_after_client_disconnects,
                                        wire_start_uncached, wire_stop_each),
        cmocka_unit_test_setup_teardown(block_mapped_by_detached_process_is_not_reused,
                                        wire_start_each, wire_stop_each),
        cmocka_unit_test(block_mapped_from_other_pid_namespace_is_not_reused),
        cmocka_unit_test_setup_teardown(reconnecting_clients_leave_no_blocks, wire_start_each,
                                        wire_stop_each),
        ROW(kept_memory_stays_charged),
        ROW(memory_kept_in_a_message_stays_charged),
        ROW(kept_memory_fills_the_budget),
        ROW(death_of_process_frees_kept_memory),
        ROW(daemon_ends_despite_kept_memory),
        ROW(watch_survives_many_frees),
        ROW_WITH_CACHE(kept_results_make_no_room),
        ROW_WITH_CACHE(results_make_room),
        ROW_WITH_CACHE(results_make_room_for_summaries),
        ROW_WITH_CACHE(kept_results_count_for_their_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
