/* SPDX-License-Identifier: MIT
 *
 * The daemon's own memory against the accounts of its users: the memory that requests make it keep
 * is charged, up to a part. SHUF_HEAP_STEPS makes the random load longer.
 */
#include "shuf.h"
#include "shuf_daemon.h"
#include "support/cmocka_all.h"
#include "support/random.h"
#include "support/take.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS = 4000,
    PLANS = 300,
    MANY = 9000,
    OF_PLAN = 8 << 10, /* most own memory of a leased plan; its lists have 64 KB */
    SLACK = 3 << 20,   /* connections, buffers of replies, and fragments */
    PART = 4,          /* the own memory is less than a fourth of the charged memory */
    HELD = 60,
    STEPS = 4000,
    MOST = 3000, /* values of a result */
};

/* AddressSanitizer keeps freed memory, here up to a small limit. So the memory of the daemon grows
 * at first, but hardly in the second half of the load. */
#ifdef __SANITIZE_ADDRESS__
enum { ADDRESS_SANITIZED = 1, GROWTH = 6 << 20 };
#else
enum { ADDRESS_SANITIZED = 0, GROWTH = 0 };
#endif

static struct harness h;
static shuf *handle;

static int start(void **state)
{
    (void)state;
    wire_start(&h, "cpu", "leases = 10000\nhost_memory = 256Mi\nlog_level = warning\n");
    return shuf_connect(&handle, h.socket) == SHUF_OK ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    shuf_close(handle);
    return harness_stop(&h) ? 0 : -1;
}

static void expect_ok(shuf_status status)
{
    if (status != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
}

/* The bytes of the daemon that are not of a result. */
static uint64_t own_bytes(void)
{
    char path[32], line[128];
    unsigned long kib = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)h.pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) && sscanf(line, "RssAnon: %lu kB", &kib) != 1)
        continue;
    fclose(file);
    assert_true(kib > 0);
    return (uint64_t)kib << 10;
}

/* ---- Plans with lists of sizes ---- */

static shuf_lease *lease_plan(uint64_t seed, const uint64_t *sizes)
{
    shuf_lease *lease = NULL;
    const shuf_request ranks = {
        .kind = SHUF_RANKS,
        .ranks = {
            .n = RANKS, .seed = seed, .rank = 1, .world = RANKS, .input = sizes, .output = sizes}};
    expect_ok(shuf_lease_take(handle, &ranks, NULL, &lease));
    return lease;
}

/* The entries of computed plans keep no lists, but requests with other lists find no such entry. */
static void computed_plans_keep_no_lists(void **state)
{
    uint64_t sizes[RANKS], other[RANKS];
    shuf_lease *leases[PLANS];
    (void)state;
    for (uint64_t r = 0; r < RANKS; r++)
        sizes[r] = other[r] = 1;
    other[10] = 2;
    other[11] = 0;
    leases[0] = lease_plan(0, sizes);
    const uint64_t before = own_bytes();
    for (uint64_t i = 1; i < PLANS; i++)
        leases[i] = lease_plan(i, sizes);
    if (!TEST_SANITIZED)
        assert_in_range(own_bytes(), 0, before + PLANS * OF_PLAN);
    shuf_lease *same = lease_plan(PLANS - 1, sizes), *different = lease_plan(PLANS - 1, other);
    assert_true(same->shared && same->block == leases[PLANS - 1]->block);
    assert_true(!different->shared && different->block != leases[PLANS - 1]->block);
    expect_ok(shuf_lease_release(handle, &same));
    expect_ok(shuf_lease_release(handle, &different));
    for (uint64_t i = 0; i < PLANS; i++)
        expect_ok(shuf_lease_release(handle, &leases[i]));
}

/* ---- Memory that evicted entries give back ---- */

/* Some entries stay, so libc itself would keep nearly all of the heap. */
static void evicted_entries_give_memory_back(void **state)
{
    static shuf_lease *leases[MANY];
    (void)state;
    const uint64_t before = own_bytes();
    for (uint64_t i = 0; i < MANY; i++) {
        const shuf_request p = {.permutation = {.n = 10, .seed = i}};
        expect_ok(shuf_lease_take(handle, &p, NULL, &leases[i]));
    }
    const uint64_t most = own_bytes();
    for (uint64_t i = 0; i < MANY; i++)
        if (i % 100)
            expect_ok(shuf_lease_release(handle, &leases[i]));
    expect_ok(shuf_drop(handle, SHUF_OWN, 0, NULL));
    if (!TEST_SANITIZED) {
        assert_true(most > before + (4 << 20)); /* so the heap has grown */
        assert_in_range(own_bytes(), 0, before + (most - before) / 2);
    }
    for (uint64_t i = 0; i < MANY; i += 100)
        expect_ok(shuf_lease_release(handle, &leases[i]));
}

/* ---- A random load of all kinds of requests ---- */

static uint64_t values[2 * MOST];

static void copy_something(void)
{
    const uint64_t n = random_size(MOST), seed = random_below(100);
    const shuf_request p = {.permutation = {.n = n, .seed = seed}},
                       wide = {.permutation = {.n = n, .seed = seed, .dtype = SHUF_U64}};
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS,
        .numbers = {
            .distribution = SHUF_GAUSS, .std = 1, .count = n, .seed = seed, .dtype = SHUF_F64}};
    const shuf_records records = {.n = n, .record = 8, .seed = seed};
    uint64_t at = n - 1;
    switch (random_below(5)) {
    case 0:
        expect_ok(shuf_copy(handle, &wide, values, 8 * n, NULL));
        break;
    case 1:
        expect_ok(shuf_copy(handle, &numbers, values, 8 * n, NULL));
        break;
    case 2:
        expect_ok(shuf_shuffle(handle, &records, values, values + MOST, 8 * n, NULL));
        break;
    case 3:
        expect_ok(shuf_index(handle, &p.permutation, SHUF_INVERSE, &at, 1, &at));
        break;
    default:
        expect_ok(shuf_prefetch(handle, &p, NULL));
    }
}

static void lease_something(shuf_lease **lease)
{
    const uint64_t n = random_size(MOST), seed = random_below(100), world = random_size(MOST);
    uint64_t sizes[MOST];
    const shuf_request p = {.permutation = {.n = n, .seed = seed}};
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS, .numbers = {.distribution = SHUF_UNIFORM, .count = n, .seed = seed}};
    const shuf_request ranks = {.kind = SHUF_RANKS,
                                .ranks = {.n = n, .seed = seed, .world = world, .input = sizes}};
    switch (random_below(4)) {
    case 0:
        expect_ok(shuf_lease_take(handle, &p, NULL, lease));
        break;
    case 1:
        expect_ok(shuf_lease_take(handle, &numbers, NULL, lease));
        break;
    case 2:
        expect_ok(take_buffer(handle, 8 * n, NULL, lease));
        break;
    default:
        random_sizes(n, world, sizes);
        expect_ok(shuf_lease_take(handle, &ranks, NULL, lease));
    }
}

static void ask_something(void)
{
    shuf_daemon daemon;
    char *text;
    if (random_below(2) == 0) {
        expect_ok(shuf_daemon_status(handle, &daemon));
    } else {
        expect_ok(shuf_daemon_metrics(handle, SHUF_PROMETHEUS, &text));
        free(text);
    }
}

static void take_step(shuf_lease *leases[HELD])
{
    shuf_lease **lease = &leases[random_below(HELD)];
    const uint64_t kind = random_below(20);
    if (kind == 0)
        ask_something();
    else if (kind == 1 && random_below(20) == 0)
        expect_ok(shuf_drop(handle, SHUF_OWN, 0, NULL));
    else if (kind < 10)
        copy_something();
    else if (*lease)
        expect_ok(shuf_lease_release(handle, lease));
    else
        lease_something(lease);
}

static void own_memory_is_a_part_of_the_charged(void **state)
{
    const char *given = getenv("SHUF_HEAP_STEPS");
    const unsigned long steps = given ? strtoul(given, NULL, 10) : STEPS;
    shuf_lease *leases[HELD] = {NULL};
    (void)state;
    random_start("heap");
    const uint64_t before = own_bytes();
    uint64_t halfway = 0;
    for (unsigned long i = 0; i < steps; i++) {
        take_step(leases);
        if (i == steps / 2)
            halfway = own_bytes();
        if (i % 500 == 0 && !TEST_SANITIZED)
            assert_in_range(own_bytes(), 0, before + wire_status(&h).host_used / PART + SLACK);
    }
    if (ADDRESS_SANITIZED)
        assert_in_range(own_bytes(), 0, halfway + GROWTH);
    for (int i = 0; i < HELD; i++)
        if (leases[i])
            expect_ok(shuf_lease_release(handle, &leases[i]));
    expect_ok(shuf_drop(handle, SHUF_OWN, 0, NULL));
    if (!TEST_SANITIZED)
        assert_in_range(own_bytes(), 0, before + SLACK);
}

int main(void)
{
    /* of the daemon */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=8:thread_local_quarantine_size_kb=64", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(computed_plans_keep_no_lists, start, stop),
        cmocka_unit_test_setup_teardown(evicted_entries_give_memory_back, start, stop),
        cmocka_unit_test_setup_teardown(own_memory_is_a_part_of_the_charged, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
