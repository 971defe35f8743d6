/* SPDX-License-Identifier: MIT
 *
 * Warm blocks: when the daemon makes one, which request uses it, and when it is freed. The device
 * and the machine's memory are fake, apart from the last tests.
 */
#include "shuf.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD

enum { LARGE_N = 10 << 20, HALF_N = 8 << 20 }; /* values of 40 and 32 MiB */

static const uint64_t pool = 64 * MI;
static struct harness h;
static struct wire *w;

static void start(const char *host_memory, const char *host_cache)
{
    const char *const settings[] = {"host_warm",   "64Mi",       "host_memory",
                                    host_memory,   "host_cache", host_cache,
                                    "socket_mode", "0666",       NULL};
    fake_backend_start(&h, settings);
    assert_int_equal(chmod(h.directory, 0755), 0);
    w = wire_greet(&h);
}

static int make_machine(void **state)
{
    if (fake_backend_reset(state) != 0)
        return -1;
    faults->total = faults->available = 4096 * MI;
    return 0;
}

static void stop(void)
{
    wire_close(w);
    assert_true(harness_stop(&h));
    assert_int_equal(seen->host, 0);
}

/* The block of a result, whose lease has been released and whose memory is unmapped. */
struct leased {
    uint64_t block, block_bytes;
    bool shared;
};

static struct leased lease_and_release(struct wire *client, uint64_t n, uint64_t seed)
{
    const Shuf__ResultReply *reply = wire_lease(client, n, seed, HOST);
    const struct leased leased = {reply->block, reply->block_bytes, reply->shared};
    if (client->descriptor >= 0)
        close(wire_take_descriptor(client));
    wire_release(client, reply->lease, reply->block);
    return leased;
}

static void drop_all(void)
{
    Shuf__Drop drop = SHUF__DROP__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    drop.of_case = SHUF__DROP__OF_ALL;
    drop.all = true;
    request.id = 5;
    request.body_case = SHUF__REQUEST__BODY_DROP;
    request.drop = &drop;
    wire_send(w, &request);
    wire_expect(w, SHUF_OK, "");
}

static void await_warm(void)
{
    WIRE_AWAIT(&h, s, s.host_idle == pool && s.host_used == pool);
}

static void warm_block_is_made_at_start(void **state)
{
    (void)state;
    char log[4096];
    start("1Gi", "1Mi");
    await_warm();
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.blocks, 1);
    assert_int_equal(s.n_users, 1); /* this user; the warm block has no user */
    shufd_await(h.log, log, sizeof log, "host_warm: a block of 64 MiB is ready");
    stop();
}

/* Every large result uses the warm block. The block stays warm after each release, whether or not
 * host_cache has room for it. */
static void check_warm_block_is_reused(bool with_room)
{
    start("1Gi", with_room ? "1Gi" : "1Mi");
    await_warm();
    const unsigned before = seen->allocations;
    const struct leased first = lease_and_release(w, LARGE_N, 1);
    assert_int_equal(first.block_bytes, pool);
    await_warm();
    const struct leased again = lease_and_release(w, LARGE_N, 1),
                        next = lease_and_release(w, LARGE_N + 5, 2);
    assert_true(again.shared && !next.shared);
    assert_true(again.block == first.block && next.block == first.block);
    assert_int_equal(seen->allocations, before);
    await_warm();
    stop();
}

static void warm_block_is_reused(void **state)
{
    (void)state;
    check_warm_block_is_reused(false);
}

static void warm_block_is_reused_from_cache(void **state)
{
    (void)state;
    check_warm_block_is_reused(true);
}

/* A result of at most half the size of the warm block gets its own block. So does a result larger
 * than the warm block. */
static void other_sizes_do_not_use_warm_block(void **state)
{
    (void)state;
    start("1Gi", "1Gi");
    await_warm();
    assert_int_equal(lease_and_release(w, HALF_N, 1).block_bytes, 32 * MI);
    assert_int_equal(lease_and_release(w, HALF_N + 1, 2).block_bytes, pool);
    assert_int_equal(lease_and_release(w, 17 * MI, 3).block_bytes, 72 * MI);
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.host_used, (32 + 64 + 72) * MI);
    stop();
}

/* Two blocks are released. The daemon keeps one as the warm block. It frees the other, because
 * host_cache has no room. */
static void one_released_block_stays_warm(void **state)
{
    (void)state;
    start("1Gi", "1Mi");
    await_warm();
    const uint64_t one = wire_lease(w, LARGE_N, 1, HOST)->lease;
    close(wire_take_descriptor(w));
    const uint64_t two = wire_lease(w, LARGE_N, 2, HOST)->lease;
    close(wire_take_descriptor(w));
    wire_release(w, one, 0);
    wire_release(w, two, 0);
    WIRE_AWAIT(&h, s, s.host_idle == pool && s.host_used == pool);
    stop();
}

static void lease_as_other_user(int channel, void *context)
{
    (void)context;
    struct wire *other = wire_greet(&h);
    child_send(channel, lease_and_release(other, LARGE_N, 1).block);
    wire_close(other);
}

/* The warm block of a user is never given to another user. */
static void users_share_no_warm_block(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip();
    start("1Gi", "1Gi");
    await_warm();
    const uint64_t own_block = lease_and_release(w, LARGE_N, 1).block;
    const struct child child = child_start_as(CHILD_NOBODY, lease_as_other_user, NULL);
    assert_int_not_equal(child_receive(child.channel), own_block);
    child_join(&child);
    stop();
}

/* The daemon frees the warm block when results need the memory. It makes a new one when there is
 * room. */
static void warm_block_is_freed_for_results(void **state)
{
    (void)state;
    start("80Mi", "1Gi");
    await_warm();
    const uint64_t lease = wire_lease(w, HALF_N, 1, HOST)->lease;
    close(wire_take_descriptor(w));
    usleep(1500000); /* the daemon checks once a second */
    Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.host_used, 32 * MI);
    wire_release(w, lease, 0);
    drop_all();
    await_warm();
    stop();
}

static void warm_block_is_made_again_after_drop(void **state)
{
    (void)state;
    start("1Gi", "1Gi");
    await_warm();
    const uint64_t block = lease_and_release(w, LARGE_N, 1).block;
    drop_all();
    await_warm();
    assert_int_not_equal(lease_and_release(w, LARGE_N, 1).block, block);
    stop();
}

static void shortage_frees_warm_block(void **state)
{
    (void)state;
    start("1Gi", "1Gi");
    await_warm();
    faults->available = 300 * MI; /* less than an eighth */
    WIRE_AWAIT(&h, s, s.host_idle == 0 && s.host_used == 0);
    usleep(1500000);
    assert_int_equal(wire_status(&h).host_used, 0);
    faults->available = 4096 * MI;
    await_warm();
    stop();
}

/* The daemon ends before it makes the block, while it makes the block, or after that. */
static void daemon_ends_while_making_warm_block(void **state)
{
    (void)state;
    for (unsigned us = 0; us < 60000; us += 15000) {
        start("1Gi", "1Gi");
        usleep(us);
        stop();
    }
}

/* Lets madvise(MADV_POPULATE_WRITE) fail in this process and in the daemon that it starts. */
static void refuse_populate(int cause)
{
    enum { POPULATE_WRITE = 23 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)cause),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void make_warm_on_old_kernel(int channel, void *context)
{
    (void)channel;
    (void)context;
    refuse_populate(EINVAL);
    start("1Gi", "1Gi");
    await_warm();
    stop();
}

/* Without memory, a write to the block could end the daemon. It tries again each second. */
static void give_up_without_memory(int channel, void *context)
{
    (void)channel;
    (void)context;
    const unsigned before = seen->allocations;
    refuse_populate(EFAULT);
    start("1Gi", "1Gi");
    for (unsigned waited = 0; seen->allocations < before + 2;)
        wire_wait(&waited, "another try to make the warm block");
    assert_int_equal(wire_status(&h).host_idle, 0);
    stop();
}

static void warm_block_is_touched_by_hand_only_on_old_kernels(void **state)
{
    (void)state;
    struct child child = child_start(make_warm_on_old_kernel, NULL);
    child_join(&child);
    child = child_start(give_up_without_memory, NULL);
    child_join(&child);
}

/* ---- host_warm and device_warm of a real daemon; SIGHUP changes them ---- */

enum { N = 60 << 20, PAGES = 4 * N / 4096 }; /* 240 MiB */

static uint64_t page_faults(void)
{
    char path[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)h.pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %" SCNu64, &count), 1);
    fclose(file);
    return count;
}

/* Takes a lease. Returns the number of pages that the daemon touched for the first time. */
static uint64_t lease_and_count_page_faults(uint64_t seed, uint64_t *used)
{
    shuf *handle;
    shuf_lease *lease = NULL;
    const shuf_request request = {.permutation = {.n = N, .seed = seed}};
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    const uint64_t before = page_faults();
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
    const uint64_t count = page_faults() - before;
    /* on a GPU the workspace is not counted here, because it is in device memory */
    *used = wire_status(&h).host_used;
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    shuf_close(handle);
    return count;
}

static void rewrite(const char *text)
{
    char path[HARNESS_PATH + 8];
    snprintf(path, sizeof path, "%s/conf", h.directory);
    shufd_write(path, text);
    kill(h.pid, SIGHUP);
}

static void first_result_uses_touched_memory(void **state)
{
    (void)state;
    uint64_t bytes;
    wire_start(&h, harness_backend,
               "host_warm = 256Mi\ndevice_warm = 256Mi\nhost_memory = 1Gi\ndevice_memory = 1Gi\n");
    const uint64_t device = harness_is_cuda() ? 256 * MI : 0;
    WIRE_AWAIT(&h, s, s.host_idle == 256 * MI && s.device_idle == device);
    /* A sanitizer touches its own memory too. */
    assert_true(lease_and_count_page_faults(1, &bytes) < PAGES / (TEST_SANITIZED ? 2 : 8));
    assert_int_equal(bytes, 256 * MI);
    assert_true(harness_stop(&h));
}

static void reload_changes_warm_blocks(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "host_memory = 1Gi\ndevice_memory = 1Gi\n");
    assert_int_equal(wire_status(&h).memory_used, 0);
    rewrite("host_memory = 1Gi\ndevice_memory = 1Gi\nhost_warm = 64Mi\ndevice_warm = 64Mi\n");
    WIRE_AWAIT(&h, s, s.memory_used == 64 * MI && s.host_used == 64 * MI);
    rewrite("host_memory = 1Gi\ndevice_memory = 1Gi\nhost_warm = 32Mi\ndevice_warm = 32Mi\n");
    WIRE_AWAIT(&h, s, s.memory_used == 32 * MI && s.host_used == 32 * MI);
    rewrite("host_memory = 1Gi\ndevice_memory = 1Gi\n");
    WIRE_AWAIT(&h, s, s.memory_used == 0 && s.host_used == 0);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(warm_block_is_made_at_start, make_machine),
        cmocka_unit_test_setup(warm_block_is_reused, make_machine),
        cmocka_unit_test_setup(warm_block_is_reused_from_cache, make_machine),
        cmocka_unit_test_setup(other_sizes_do_not_use_warm_block, make_machine),
        cmocka_unit_test_setup(one_released_block_stays_warm, make_machine),
        cmocka_unit_test_setup(users_share_no_warm_block, make_machine),
        cmocka_unit_test_setup(warm_block_is_freed_for_results, make_machine),
        cmocka_unit_test_setup(warm_block_is_made_again_after_drop, make_machine),
        cmocka_unit_test_setup(shortage_frees_warm_block, make_machine),
        cmocka_unit_test_setup(warm_block_is_touched_by_hand_only_on_old_kernels, make_machine),
        cmocka_unit_test_setup(daemon_ends_while_making_warm_block, make_machine),
        cmocka_unit_test(first_result_uses_touched_memory),
        cmocka_unit_test(reload_changes_warm_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
