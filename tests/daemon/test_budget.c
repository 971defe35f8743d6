/* SPDX-License-Identifier: MIT
 *
 * The memory of a daemon with a fake device, when other programs use memory too. The limit is the
 * free memory, minus a reserve, plus the memory of the daemon's own blocks. Of a block, the pages
 * that exist count. Workspaces count too, are kept for the next job, and are freed for results.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)

static struct harness h;
static struct wire *w;

static int start_with(void **state, const char *host_memory)
{
    const char *const cached[] = {"host_memory", host_memory, "cache_time", "10min", NULL};
    if (fake_backend_reset(state) != 0)
        return -1;
    faults->total = 160 * MI; /* the reserve for other programs is a sixteenth */
    faults->available = 110 * MI;
    fake_backend_start(&h, cached);
    w = wire_greet(&h);
    return 0;
}

static int start(void **state)
{
    return start_with(state, "100%");
}

static int stop(void **state)
{
    (void)state;
    wire_close(w);
    return harness_stop(&h) ? 0 : -1;
}

static Shuf__ResultReply allocate(struct wire *client, uint64_t bytes)
{
    struct shuf__result_message allocate =
        wire_result(SHUF__RESULT__WHAT_BUFFER, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    allocate.buffer.bytes = bytes;
    wire_send_result(client, &allocate);
    return *wire_expect(client, SHUF_OK, "")->result;
}

/* Makes an allocation, so that the daemon computes the limit anew. Returns the limit. */
static uint64_t current_limit(void)
{
    const uint64_t blocks = wire_status(&h).blocks;
    struct wire *client = wire_greet(&h);
    allocate(client, 1);
    const uint64_t found = wire_status(&h).host_limit;
    wire_close(client);
    WIRE_AWAIT(&h, s, s.blocks == blocks);
    return found;
}

/* The memory of a released block is free a little later. */
static void await_limit(uint64_t bytes)
{
    for (unsigned waited = 0; current_limit() != bytes;)
        wire_wait(&waited, "the limit");
}

/* ---- Buffers ---- */

/* The daemon counts the pages of a buffer that exist because a process has written to them. */
static void written_buffer_pages_count(void **state)
{
    (void)state;
    assert_int_equal(current_limit(), 100 * MI);
    const Shuf__ResultReply b = allocate(w, 8 * MI);
    int fd = wire_take_descriptor(w);
    void *view = mmap(NULL, 8 * MI, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    assert_int_equal(current_limit(), 100 * MI);
    memset(view, 1, 4 * MI);
    assert_int_equal(current_limit(), 104 * MI);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * MI), 0);
    assert_int_equal(current_limit(), 102 * MI);
    close(fd);
    munmap(view, 8 * MI);
    assert_int_equal(current_limit(), 102 * MI);
    wire_release(w, b.lease, b.block);
    WIRE_AWAIT(&h, s, s.host_used == 0);
    await_limit(100 * MI);
    assert_int_equal(current_limit(), 100 * MI);
}

/* ---- Results and workspaces ---- */

/* Requests a summary of n values of 4 bytes. */
static void send_summary_request(struct wire *client, uint64_t n, uint64_t seed)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.permutation.seed = seed;
    wire_send_result(client, &permute);
}

static void request_permutation(uint64_t n, uint64_t seed)
{
    send_summary_request(w, n, seed);
    wire_expect(w, SHUF_OK, "");
}

static void workspaces_count(void **state)
{
    (void)state;
    faults->workspace_best = 6 * MI;
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 6 * MI);
    assert_int_equal(current_limit(), 110 * MI);
    request_permutation(MI, 2); /* in the same workspace */
    assert_int_equal(current_limit(), 114 * MI);
}

/* ---- Several daemons ---- */

static void instances_share_host_memory(void **state)
{
    static const struct {
        const char *instances, *host_memory;
        uint64_t limit;
    } rows[] = {
        {"1", "100%", 100 * MI}, /* 100 MiB are free, less than 160 MiB */
        {"2", "100%", 80 * MI},  {"8", "100%", 20 * MI},
        {"8", "50%", 10 * MI},   {"8", "64Mi", 64 * MI}, /* an amount in bytes is for one daemon */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv("SHUFD_INSTANCES", rows[i].instances, 1);
        assert_int_equal(start_with(state, rows[i].host_memory), 0);
        assert_int_equal(current_limit(), rows[i].limit);
        assert_int_equal(stop(state), 0);
    }
    unsetenv("SHUFD_INSTANCES");
}

/* ---- More than the machine has ---- */

static void refuse_permutation(uint64_t n, shuf_status status, const char *words)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, status, words);
}

/* host_memory is more than the machine has. A request for more than the machine can lend fails with
 * NO_MEMORY, although it fits host_memory. If only the memory of other programs is missing, the
 * request fails with BUSY. */
static void requests_beyond_the_machine_never_fit(void **state)
{
    assert_int_equal(start_with(state, "100Ti"), 0);
    refuse_permutation(50 * MI, SHUF_NO_MEMORY,
                       "needs 200 MiB of host memory, the machine or the control group has 160 MiB "
                       "and lends 150 MiB at most: ask for a part of the result");
    refuse_permutation(38 * MI, SHUF_NO_MEMORY, "needs 152 MiB of host memory");
    refuse_permutation(37 * MI, SHUF_BUSY, "other programs leave 100 MiB");
    assert_int_equal(stop(state), 0);
}

/* ---- Send buffers ---- */

/* The bytes of a reply that the kernel keeps for a client that does not read. */
static int unread_bytes(struct wire *client)
{
    int last = -1, bytes = 0;
    struct shuf__result_message permute = wire_permutation(MI, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(client, &permute);
    wire_expect(client, SHUF_OK, "");
    while (bytes != last || bytes == 0) {
        last = bytes;
        usleep(200000);
        assert_int_equal(ioctl(client->fd, FIONREAD, &bytes), 0);
    }
    return bytes;
}

/* No budget counts the send buffers. With 1024 clients they may have a sixteenth of the memory, and
 * 16 KiB each. */
static void send_buffers_follow_the_memory(void **state)
{
    static const char *const none[] = {NULL};
    int standard;
    socklen_t length = sizeof standard;
    for (uint64_t total = 256 * MI; total <= 65536 * MI; total *= 256) {
        assert_int_equal(fake_backend_reset(state), 0);
        faults->total = faults->available = total;
        fake_backend_start(&h, none);
        w = wire_greet(&h);
        assert_int_equal(getsockopt(w->fd, SOL_SOCKET, SO_SNDBUF, &standard, &length), 0);
        if (total == 256 * MI)
            assert_in_range(unread_bytes(w), 1, 32 << 10);
        else
            assert_in_range(unread_bytes(w), standard / 2, 2 * standard);
        assert_int_equal(stop(state), 0);
    }
}

/* ---- Workspaces, of the sizes that a test sets ---- */

#define MEMFD SHUF__TRANSPORT__TRANSPORT_MEMFD

/* Starts a daemon with a limit of 16 MiB. */
static void start_small(void)
{
    static const char *const small[] = {"host_memory", "16Mi", "cache_time", "10min", NULL};
    fake_backend_start(&h, small);
    w = wire_greet(&h);
}

static void end_daemon(void)
{
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void expect_used(uint64_t bytes, uint64_t blocks)
{
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.host_used, bytes);
    assert_int_equal(s.memory_used, bytes); /* the fake device keeps its memory in host memory */
    assert_int_equal(s.blocks, blocks);
}

static void workspace_is_reused_by_next_job(void **state)
{
    (void)state;
    faults->workspace_best = 3 * MI; /* rounded up to two units of 2 MiB */
    start_small();
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 4 * MI);
    expect_used(8 * MI, 2);
    assert_int_equal(wire_idle_bytes(&h), 8 * MI);
    const void *first = seen->workspace_at;
    request_permutation(MI, 2);
    assert_ptr_equal(seen->workspace_at, first);
    assert_int_equal(seen->allocations, 3);
    expect_used(12 * MI, 3);
    request_permutation(MI, 1); /* its result is in the cache */
    assert_int_equal(seen->launches, 2);
    assert_int_equal(wire_status(&h).evicted, 0);
    end_daemon();
}

/* A new result needs the memory of an idle workspace, and gets it. The job of that result gets no
 * workspace, because a workspace would only make it faster. */
static void workspace_is_freed_for_result(void **state)
{
    (void)state;
    faults->workspace_best = 8 * MI;
    start_small();
    request_permutation(MI, 1);
    expect_used(12 * MI, 2);
    request_permutation(3 * MI, 2);
    assert_int_equal(seen->launches, 2);
    assert_int_equal(seen->workspace_bytes, 0);
    expect_used(16 * MI, 2);
    assert_int_equal(wire_status(&h).evicted, 0); /* the first result is still cached */
    end_daemon();
}

/* A new result needs memory. The workspace is freed before idle results, although it was used last,
 * because a result may be requested again. */
static void workspace_is_freed_before_idle_results(void **state)
{
    (void)state;
    start_small();
    request_permutation(MI, 1);
    faults->workspace_best = 4 * MI;
    request_permutation(MI, 2);
    expect_used(12 * MI, 3);
    faults->workspace_best = 0;
    request_permutation(2 * MI, 3);
    expect_used(16 * MI, 3);
    assert_int_equal(wire_status(&h).evicted, 0);
    end_daemon();
}

/* Every job uses the workspace. This does not keep idle results from expiring. */
static void workspace_use_does_not_keep_results(void **state)
{
    (void)state;
    enum { JOBS = 20 };
    static const char *const short_cache_time[] = {"cache_time", "200ms", NULL};
    faults->workspace_best = 2 * MI;
    fake_backend_start(&h, short_cache_time);
    w = wire_greet(&h);
    request_permutation(1000, 1);
    for (uint64_t i = 1; i <= JOBS; i++) {
        request_permutation(1000, 1 + i);
        usleep(50000);
    }
    request_permutation(1000, 1);
    assert_int_equal(seen->launches, JOBS + 2);
    end_daemon();
}

static void workspace_is_freed_after_cache_time(void **state)
{
    (void)state;
    static const char *const short_cache_time[] = {"cache_time", "100ms", NULL};
    static const char *const no_cache_time[] = {"cache_time", "0", NULL};
    faults->workspace_best = 8 * MI;
    for (int i = 0; i < 2; i++) {
        fake_backend_start(&h, i == 0 ? short_cache_time : no_cache_time);
        w = wire_greet(&h);
        request_permutation(MI, 1);
        assert_int_equal(seen->workspace_bytes, 8 * MI);
        WIRE_AWAIT(&h, s, s.host_used == 0 && s.blocks == 0);
        end_daemon();
    }
}

static void workspace_shrinks_to_fit_the_budget(void **state)
{
    (void)state;
    faults->workspace_best = 14 * MI;
    start_small();
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 0);
    faults->workspace_least = 5 * MI;
    request_permutation(MI, 2);
    assert_int_equal(seen->workspace_bytes, 6 * MI);
    expect_used(14 * MI, 3);
    end_daemon();
}

/* A job can run without its best workspace, so no idle result is evicted for it. For the least
 * workspace, an idle result is evicted. */
static void only_least_workspace_evicts_idle_result(void **state)
{
    (void)state;
    start_small();
    for (uint64_t seed = 1; seed <= 3; seed++)
        request_permutation(MI, seed);
    faults->workspace_best = 6 * MI;
    request_permutation(MI / 2, 4);
    assert_int_equal(seen->workspace_bytes, 0);
    assert_int_equal(wire_status(&h).evicted, 0);
    expect_used(14 * MI, 4);
    faults->workspace_least = 4 * MI;
    request_permutation(MI / 2, 5);
    assert_int_equal(seen->workspace_bytes, 4 * MI);
    assert_int_equal(wire_status(&h).evicted, 1);
    expect_used(16 * MI, 5);
    end_daemon();
}

static void workspace_above_budget_is_refused(void **state)
{
    (void)state;
    faults->workspace_best = faults->workspace_least = 14 * MI - 1; /* rounded up to whole units */
    start_small();
    send_summary_request(w, MI, 1);
    wire_expect(w, SHUF_NO_MEMORY,
                "needs 18 MiB of host memory with its input and workspace, the limit is 16 MiB");
    send_summary_request(w, 5 * MI, 1); /* the result alone is too large: 20 MiB */
    wire_expect(w, SHUF_NO_MEMORY,
                "needs 34 MiB of host memory with its input and workspace, the limit is 16 MiB");
    assert_int_equal(seen->launches, 0);
    expect_used(0, 0);
    end_daemon();
}

/* The result is in host memory and its workspace in device memory, as on a GPU. Each has its own
 * budget. */
static void workspace_counts_in_its_own_budget(void **state)
{
    (void)state;
    static const char *const small[] = {"host_memory", "4Mi", "device_memory", "6Mi", NULL};
    faults->workspace_on_device = true;
    faults->workspace_best = faults->workspace_least = 6 * MI;
    fake_backend_start(&h, small);
    w = wire_greet(&h);
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 6 * MI);
    expect_used(4 * MI, 2);
    request_permutation(MI, 2);
    assert_int_equal(seen->allocations, 2); /* both blocks are reused */
    faults->workspace_least = faults->workspace_best = 7 * MI;
    send_summary_request(w, MI, 3);
    wire_expect(w, SHUF_NO_MEMORY,
                "for its workspace, the request needs 8 MiB of device memory, the limit is 6 MiB: "
                "start shufd with a larger --device-memory");
    assert_int_equal(seen->launches, 2);
    end_daemon();
}

static void workspace_beside_leased_memory_is_refused(void **state)
{
    (void)state;
    faults->workspace_best = faults->workspace_least = 6 * MI;
    start_small();
    struct wire *owner = wire_greet(&h);
    const Shuf__ResultReply *reply = wire_lease(owner, 2 * MI, 1, MEMFD);
    const uint64_t lease = reply->lease, block = reply->block;
    expect_used(14 * MI, 2);
    send_summary_request(w, MI, 2);
    wire_expect(w, SHUF_BUSY,
                "with its workspace, the request needs 10 MiB of host memory, 8 MiB of 16 MiB "
                "are held by this user's own leases and requests (host_memory): release a lease");
    expect_used(14 * MI, 2); /* nothing was evicted, because that would not have freed enough */
    assert_int_equal(seen->launches, 1);
    wire_release(owner, lease, block);
    request_permutation(MI, 2);
    assert_int_equal(seen->workspace_bytes, 6 * MI);
    wire_close(owner);
    end_daemon();
}

/* A client keeps the block of a released result mapped. If a new block and its workspace would
 * exceed the budget, the daemon reuses that block. */
static void mapped_block_is_reused_beside_workspace(void **state)
{
    (void)state;
    faults->workspace_best = faults->workspace_least = 6 * MI;
    start_small();
    const Shuf__ResultReply *reply = wire_lease(w, 2 * MI, 1, MEMFD);
    const uint64_t block = reply->block, bytes = reply->block_bytes, lease = reply->lease;
    const void *view = wire_map(w, bytes);
    wire_release(w, lease, 0);
    reply = wire_lease(w, 2 * MI, 2, MEMFD);
    assert_int_equal(reply->block, block);
    expect_used(14 * MI, 2);
    wire_unmap(view, bytes);
    end_daemon();
}

/* The same, but here the new block alone would fit into the budget. */
static void smaller_mapped_block_is_reused_beside_workspace(void **state)
{
    (void)state;
    faults->workspace_best = faults->workspace_least = 6 * MI;
    start_small();
    const Shuf__ResultReply *reply = wire_lease(w, MI, 1, MEMFD);
    const uint64_t block = reply->block, bytes = reply->block_bytes, lease = reply->lease;
    const void *view = wire_map(w, bytes);
    wire_release(w, lease, 0);
    faults->workspace_best = faults->workspace_least = 10 * MI;
    reply = wire_lease(w, MI, 2, MEMFD);
    assert_int_equal(reply->block, block);
    assert_int_equal(seen->workspace_bytes, 10 * MI);
    wire_unmap(view, bytes);
    end_daemon();
}

/* A block is larger than its result only if the budget has room for that. */
static void block_is_not_rounded_up_near_the_limit(void **state)
{
    (void)state;
    static const char *const tight[] = {"host_memory", "70Mi", NULL};
    fake_backend_start(&h, tight);
    w = wire_greet(&h);
    for (uint64_t i = 0; i < 2; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 17 * MI / 2, i, MEMFD);
        assert_int_equal(reply->block_bytes, (i == 0 ? 36 : 34) * MI);
    }
    end_daemon();
}

/* The budget has room, but the device refuses allocations: `times` of them, beginning with the
 * second. */
static void refuse_allocations(unsigned times)
{
    faults->full_from = seen->allocations + 2;
    faults->full_count = times;
}

static void full_device_evicts_for_least_workspace(void **state)
{
    (void)state;
    start_small();
    request_permutation(MI, 1); /* needs no workspace */
    faults->workspace_best = 2 * MI;
    refuse_allocations(1);
    request_permutation(MI, 2);
    assert_int_equal(seen->workspace_bytes, 0);
    assert_int_equal(wire_status(&h).evicted, 0);
    expect_used(8 * MI, 2);
    faults->workspace_least = 2 * MI;
    refuse_allocations(1);
    request_permutation(MI, 3);
    assert_int_equal(seen->workspace_bytes, 2 * MI);
    /* before the second try, the daemon evicted an idle result */
    assert_int_equal(wire_status(&h).evicted, 1);
    expect_used(10 * MI, 3);
    end_daemon();
}

/* The workspace is not necessary, and the device fails while it allocates it. The job then runs
 * without one. */
static void failed_optional_workspace_is_left_out(void **state)
{
    (void)state;
    start_small();
    faults->workspace_best = 2 * MI;
    faults->fails_when_full = true;
    refuse_allocations(1);
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 0);
    request_permutation(MI, 2);
    assert_int_equal(seen->workspace_bytes, 2 * MI);
    end_daemon();
}

/* The device has just enough memory. The job already has some of it when the daemon checks the free
 * memory again. That memory must not count as missing, so the job gets the rest. */
static void memory_of_job_does_not_count_as_missing(void **state)
{
    (void)state;
    static const char *const all[] = {"device_memory", "100%", "cache_time", "10min", NULL};
    static Shuf__Transport ipc = SHUF__TRANSPORT__TRANSPORT_CUDA_IPC;
    faults->device = 64 * MI;
    faults->workspace_on_device = true;
    fake_backend_start(&h, all);
    w = wire_greet(&h);
    const Shuf__ResultReply *reply = wire_lease(w, 2 * MI, 1, ipc); /* an idle result to evict */
    wire_release(w, reply->lease, reply->block);
    assert_int_equal(seen->device, 8 * MI);
    faults->workspace_best = 30 * MI;
    faults->workspace_least = 24 * MI;
    refuse_allocations(1);
    reply = wire_lease(w, 6 * MI, 2, ipc);
    assert_int_equal(reply->bytes, 24 * MI);
    assert_int_equal(seen->workspace_bytes, 24 * MI);
    assert_int_equal(seen->device, 48 * MI);
    end_daemon();
}

/* The first allocation of the result fails. The job keeps its workspace until the allocation is
 * tried again. */
static void workspace_is_kept_while_result_is_retried(void **state)
{
    (void)state;
    start_small();
    request_permutation(MI, 1);
    faults->workspace_best = 2 * MI;
    faults->full_from = seen->allocations + 1;
    faults->full_count = 1;
    request_permutation(MI, 2);
    assert_int_equal(seen->workspace_bytes, 2 * MI);
    assert_int_equal(wire_status(&h).evicted, 1);
    expect_used(6 * MI, 2);
    end_daemon();
}

static void full_device_is_an_error(void **state)
{
    (void)state;
    start_small();
    faults->workspace_best = faults->workspace_least = 2 * MI;
    refuse_allocations(1000);
    send_summary_request(w, MI, 1);
    wire_expect(w, SHUF_NO_MEMORY, "the device is full");
    WIRE_AWAIT(&h, s, s.host_used == 0 && s.blocks == 0);
    assert_int_equal(seen->launches, 0);
    faults->full_count = 0;
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 2 * MI);
    end_daemon();
}

static void cancelled_job_frees_workspace(void **state)
{
    (void)state;
    faults->workspace_best = 8 * MI;
    start_small();
    struct wire *leaving = wire_greet(&h);
    send_summary_request(leaving, WAITING_N, 1);
    wire_await_queued(&h, 1);
    WIRE_AWAIT(&h, s, s.host_used > 8 * MI && seen->launches == 1);
    wire_close(leaving);
    WIRE_AWAIT(&h, s,
               s.queued == 0 && s.host_used == 8 * MI && s.host_idle + s.device_idle == 8 * MI);
    request_permutation(MI, 1);
    assert_int_equal(seen->workspace_bytes, 8 * MI);
    expect_used(12 * MI, 2);
    end_daemon();
}

/* ---- The owner of a workspace, and computations without a workspace ---- */

static void request_as_other_user(int channel, void *context)
{
    struct wire *other = wire_greet(context);
    send_summary_request(other, MI, 1);
    wire_expect(other, SHUF_OK, "");
    wire_close(other);
    child_send(channel, 0);
}

static void start_for_all_users(void)
{
    static const char *const open_to_all[] = {"socket_mode", "0666", NULL};
    fake_backend_start(&h, open_to_all);
    assert_int_equal(chmod(h.directory, 0755), 0);
    w = wire_greet(&h);
}

/* A job of another user that ends when the test says so. */
static void run_until_told(int channel, void *context)
{
    struct wire *other = wire_greet(context);
    send_summary_request(other, WAITING_N, 1);
    child_receive(channel);
    wire_close(other);
}

/* The first job is in an allocation while the other user's job has the device, so it does not
 * notice its pause. The allocation fails in the pause. */
static void job_is_retried_after_a_pause(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    start_for_all_users();
    request_permutation(MI, 2); /* an idle result to evict */
    faults->full_from = seen->allocations + 1;
    faults->full_count = 1;
    faults->full_later = true;
    send_summary_request(w, MI, 3);
    WIRE_AWAIT(&h, s, s.queued == 1 && seen->allocations == faults->full_from);
    struct child child = child_start_as(CHILD_NOBODY, run_until_told, &h);
    WIRE_AWAIT(&h, s, s.queued == 2 && seen->launches == 2);
    faults->full_later = false;
    wire_expect(w, SHUF_OK, "");
    child_send(child.channel, 0);
    child_join(&child);
    end_daemon();
}

/* A job never uses the workspace of another user's job. */
static void users_share_no_workspace(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    faults->workspace_best = 4 * MI;
    start_for_all_users();
    request_permutation(MI, 1);
    const void *own = seen->workspace_at;
    struct child child = child_start_as(CHILD_NOBODY, request_as_other_user, &h);
    child_receive(child.channel);
    child_join(&child);
    assert_int_equal(seen->launches, 2);
    assert_ptr_not_equal(seen->workspace_at, own);
    request_permutation(MI, 2);
    assert_ptr_equal(seen->workspace_at, own);
    end_daemon();
}

/* A summary of a cached result needs no computation, so it needs no workspace. */
static void cached_summary_needs_no_workspace(void **state)
{
    (void)state;
    start_small();
    request_permutation(MI, 1);
    expect_used(4 * MI, 1);
    faults->workspace_best = faults->workspace_least =
        14 * MI; /* the budget has no room for such a workspace */
    struct shuf__result_message permute = wire_permutation(MI, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.permutation.seed = 1;
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(seen->launches, 1);
    expect_used(4 * MI, 1);
    end_daemon();
}

static void buffer_needs_no_workspace(void **state)
{
    (void)state;
    struct shuf__result_message allocate =
        wire_result(SHUF__RESULT__WHAT_BUFFER, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    faults->workspace_best = faults->workspace_least = 14 * MI;
    start_small();
    allocate.buffer.bytes = 4 * MI;
    wire_send_result(w, &allocate);
    wire_expect(w, SHUF_OK, "");
    expect_used(4 * MI, 1);
    assert_int_equal(seen->launches, 0);
    end_daemon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_buffer_pages_count, start, stop),
        cmocka_unit_test_setup_teardown(workspaces_count, start, stop),
        cmocka_unit_test(instances_share_host_memory),
        cmocka_unit_test(requests_beyond_the_machine_never_fit),
        cmocka_unit_test(send_buffers_follow_the_memory),
        cmocka_unit_test_setup(workspace_is_reused_by_next_job, fake_backend_reset),
        cmocka_unit_test_setup(workspace_is_freed_for_result, fake_backend_reset),
        cmocka_unit_test_setup(workspace_is_freed_before_idle_results, fake_backend_reset),
        cmocka_unit_test_setup(workspace_use_does_not_keep_results, fake_backend_reset),
        cmocka_unit_test_setup(workspace_is_freed_after_cache_time, fake_backend_reset),
        cmocka_unit_test_setup(workspace_shrinks_to_fit_the_budget, fake_backend_reset),
        cmocka_unit_test_setup(only_least_workspace_evicts_idle_result, fake_backend_reset),
        cmocka_unit_test_setup(workspace_above_budget_is_refused, fake_backend_reset),
        cmocka_unit_test_setup(workspace_counts_in_its_own_budget, fake_backend_reset),
        cmocka_unit_test_setup(workspace_beside_leased_memory_is_refused, fake_backend_reset),
        cmocka_unit_test_setup(mapped_block_is_reused_beside_workspace, fake_backend_reset),
        cmocka_unit_test_setup(smaller_mapped_block_is_reused_beside_workspace, fake_backend_reset),
        cmocka_unit_test_setup(block_is_not_rounded_up_near_the_limit, fake_backend_reset),
        cmocka_unit_test_setup(full_device_evicts_for_least_workspace, fake_backend_reset),
        cmocka_unit_test_setup(failed_optional_workspace_is_left_out, fake_backend_reset),
        cmocka_unit_test_setup(memory_of_job_does_not_count_as_missing, fake_backend_reset),
        cmocka_unit_test_setup(workspace_is_kept_while_result_is_retried, fake_backend_reset),
        cmocka_unit_test_setup(full_device_is_an_error, fake_backend_reset),
        cmocka_unit_test_setup(cancelled_job_frees_workspace, fake_backend_reset),
        cmocka_unit_test_setup(job_is_retried_after_a_pause, fake_backend_reset),
        cmocka_unit_test_setup(users_share_no_workspace, fake_backend_reset),
        cmocka_unit_test_setup(cached_summary_needs_no_workspace, fake_backend_reset),
        cmocka_unit_test_setup(buffer_needs_no_workspace, fake_backend_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
