/* SPDX-License-Identifier: MIT
 *
 * A small result costs about its own size in memory. So a user with thousands of them leaves room
 * for others.
 */
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define MEMFD SHUF__TRANSPORT__TRANSPORT_MEMFD

enum { LEASES = 512 };

static struct harness h;
static struct wire *w;

static int start(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "host_memory = 16Mi\nclients = 16\n");
    w = wire_greet(&h);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    wire_close(w);
    return harness_stop(&h) ? 0 : -1;
}

/* A block below 2 MiB has whole pages. Only a few sizes exist between two powers of two, so that
 * blocks can be reused. */
static void block_size_is_near_result_size(void **state)
{
    (void)state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t n[] = {1, 1000, 1024, 1025, 10000, 100000, 262144, 500000, 524287};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, n[i], 7, MEMFD);
        assert_in_range(reply->block_bytes, 4 * n[i], 4 * n[i] + 4 * n[i] / 8 + page - 1);
        wire_release(w, reply->lease, reply->block);
    }
    const Shuf__ResultReply *reply = wire_lease(w, 524288, 7, MEMFD);
    assert_int_equal(reply->block_bytes, 2 * MI);
    wire_release(w, reply->lease, reply->block);
}

static void many_leases_take_little_memory(void **state)
{
    (void)state;
    uint64_t blocks[LEASES];
    for (uint64_t i = 0; i < LEASES; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 1000, 100 + i, MEMFD);
        blocks[i] = reply->block;
        for (uint64_t j = 0; j < i; j++)
            assert_true(blocks[j] != blocks[i]);
    }
    assert_in_range(wire_status(&h).host_used, LEASES * UINT64_C(4000), 8 * MI);
    struct wire *other = wire_greet(&h);
    const Shuf__ResultReply *reply = wire_lease(other, MI, 1, MEMFD);
    assert_int_equal(reply->block_bytes, 4 * MI);
    wire_check_alive(other);
    wire_close(other);
}

/* The number of idle blocks has a limit, because each of them has a descriptor. */
static void number_of_idle_blocks_is_limited(void **state)
{
    (void)state;
    enum { SIZES = 40, EACH = 64, MOST = 2048 };
    for (uint64_t i = 0; i < SIZES * EACH; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 1 + 1024 * (i % 16), 1000 + i, MEMFD);
        wire_release(w, reply->lease, reply->block);
    }
    assert_in_range(wire_status(&h).blocks, 1, MOST + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(block_size_is_near_result_size, start, stop),
        cmocka_unit_test_setup_teardown(many_leases_take_little_memory, start, stop),
        cmocka_unit_test_setup_teardown(number_of_idle_blocks_is_limited, start, stop),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
