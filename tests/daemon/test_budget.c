/* SPDX-License-Identifier: MIT
 *
 * The memory limit of a daemon when other programs use memory too. The limit is the free memory,
 * minus a reserve, plus the memory of the daemon's own blocks. For a block, the daemon counts only
 * the pages that exist, not the requested size.
 */
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
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

/* ---- buffers ---------------------------------------------------------------------- */

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

/* ---- results and workspaces --------------------------------------------------------- */

static void request_permutation(uint64_t n, uint64_t seed)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.permutation.seed = seed;
    wire_send_result(w, &permute);
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

/* ---- several daemons ----------------------------------------------------------------- */

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

/* ---- more than the machine has ----------------------------------------------------------- */

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

/* ---- send buffers ------------------------------------------------------------------------ */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_buffer_pages_count, start, stop),
        cmocka_unit_test_setup_teardown(workspaces_count, start, stop),
        cmocka_unit_test(instances_share_host_memory),
        cmocka_unit_test(requests_beyond_the_machine_never_fit),
        cmocka_unit_test(send_buffers_follow_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
