/* SPDX-License-Identifier: MIT
 *
 * Clients that keep the memory of a block after its release, by an O_PATH descriptor. The kernel's
 * file leases do not count such a descriptor, in a process or in a message of a socket. The memory
 * stays charged to the user until the kernel frees it.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define MEMFD SHUF__TRANSPORT__TRANSPORT_MEMFD

enum {
    N = 4 << 20, /* values of 16 MiB: four results fit */
    USER_UID = 61000,
    USER_N = 10 << 20 /* values of 40 MiB; such a user may have 42 MiB */
};

static struct harness h;

static int start(void **state)
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

static int stop(void **state)
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
    const Shuf__ResultReply *reply = wire_lease(w, N, seed, MEMFD);
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
    struct shuf__result_message permute = wire_permutation(N, MEMFD);
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
    struct shuf__result_message permute = wire_permutation(4 * N, MEMFD);
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
    struct shuf__result_message permute = wire_permutation(4 * N, MEMFD);
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
    struct shuf__result_message permute = wire_permutation(8 * N, SHUF__TRANSPORT__TRANSPORT_NONE);
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

#define ROW(test) cmocka_unit_test_setup_teardown(test, start, stop)
#define ROW_WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, start_with_cache, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
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
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
