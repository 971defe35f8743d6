/* SPDX-License-Identifier: MIT
 *
 * Clients that use leases and are killed at random times. They leave no lease, no job, no memory
 * and no descriptor in the daemon. At least half of them hold a mapped lease when they die.
 *
 *     test_kill [BACKEND [DEATHS]]
 */
#include "shuf.h"
#include "support/child.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/random.h"
#include "support/wire.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SLOTS = 16, LEASES = 3, MOST_VALUES = 1000000 };

static int deaths_wanted; /* 0: the number of the test */

/* ---- A client ---- */

/* The place of one client in the test. */
struct slot {
    const struct harness *h;
    struct child child;
    uint64_t due_us;
    bool waits_for_lease; /* it dies only after it has held a lease */
    atomic_uint *held;
};

struct client {
    shuf *handle;
    shuf_lease *leases[LEASES];
    atomic_uint *held; /* shared with the parent: mapped leases, never too many */
};

static shuf_request random_request(void)
{
    /* few seeds, so that clients share results */
    return (shuf_request){
        .permutation = {.n = random_size(MOST_VALUES), .seed = random_below(4), .dtype = SHUF_U32}};
}

static const shuf_transport any_transport[] = {SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};

static int transport_count(void)
{
    return harness_is_cuda() ? 3 : 1;
}

static shuf_lease_options random_options(void)
{
    shuf_transport transport = any_transport[random_below((uint64_t)transport_count())];
    return (shuf_lease_options){.transports = transport, .event = random_below(2)};
}

static uint64_t sum(const uint32_t *values, uint64_t count)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++)
        total += values[i];
    return total;
}

static void expect_permutation(const uint32_t *values, uint64_t n)
{
    assert_int_equal(sum(values, n), n * (n - 1) / 2);
}

/* Takes a lease into a random place; if the place has a lease, exchanges it. */
static void take_random(struct client *c)
{
    const shuf_request request = random_request();
    const shuf_lease_options options = random_options();
    shuf_lease **lease = &c->leases[random_below(LEASES)];
    atomic_fetch_sub(c->held, *lease != NULL);
    client_expect_ok(c->handle, shuf_lease_take(c->handle, &request, &options, lease));
    atomic_fetch_add(c->held, 1);
}

static void release_random(struct client *c)
{
    shuf_lease **lease = &c->leases[random_below(LEASES)];
    atomic_fetch_sub(c->held, *lease != NULL);
    client_expect_ok(c->handle, shuf_lease_release(c->handle, lease));
    *lease = NULL;
}

static void read_lease(struct client *c, const shuf_lease *lease)
{
    static uint32_t values[MOST_VALUES];
    if (!lease)
        return;
    client_expect_ok(c->handle,
                     shuf_lease_read(c->handle, lease, 0, lease->result.shape.bytes, values));
    expect_permutation(values, lease->result.shape.count);
}

static void read_random(struct client *c)
{
    read_lease(c, c->leases[random_below(LEASES)]);
}

static void prefetch_random(struct client *c)
{
    const shuf_request request = random_request();
    const shuf_lease_options options = random_options();
    client_expect_ok(c->handle, shuf_prefetch(c->handle, &request, &options));
}

static void permute_random(struct client *c)
{
    static uint32_t values[MOST_VALUES];
    const shuf_request request = random_request();
    client_expect_ok(c->handle, shuf_copy(c->handle, &request, values, sizeof values, NULL));
    expect_permutation(values, request.permutation.n);
}

static void summarize_random(struct client *c)
{
    shuf_result result;
    const shuf_request request = random_request();
    client_expect_ok(c->handle, shuf_summarize(c->handle, &request, &result));
}

static void connect_anew(struct client *c, const char *socket)
{
    atomic_store(c->held, 0);
    shuf_close(c->handle); /* this ends all leases of the connection */
    memset(c->leases, 0, sizeof c->leases);
    client_expect_ok(c->handle, shuf_connect(&c->handle, socket));
}

static void run_random_client(int channel, void *context)
{
    static void (*const actions[])(struct client *) = {
        take_random, take_random,     take_random,    release_random,
        read_random, prefetch_random, permute_random, summarize_random};
    const struct slot *slot = context;
    struct client c = {.held = slot->held};
    (void)channel;
    connect_anew(&c, slot->h->socket);
    for (;;) {
        if (random_below(30) == 0)
            connect_anew(&c, slot->h->socket);
        actions[random_below(sizeof actions / sizeof actions[0])](&c);
    }
}

/* ---- The killing ---- */

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Most clients die before they have their first values, and some later. With CUDA the first values
 * take long. */
static uint64_t random_life_us(void)
{
    if (harness_is_cuda())
        return random_below(2500000);
    const uint64_t slower = TEST_SANITIZED ? 3 : 1;
    return random_below((random_below(8) ? 6000 : 60000) * slower);
}

static void start_client(struct slot *slot)
{
    slot->due_us = now_us() + random_life_us();
    slot->waits_for_lease = random_below(4) != 0;
    slot->child = child_start(run_random_client, slot);
}

/* Then the client goes on for a random time, in which it may give the lease back. */
static void await_lease(const struct slot *slot)
{
    for (unsigned waited = 0; atomic_load(slot->held) == 0;)
        wire_wait(&waited, "a client that holds a lease");
    usleep((useconds_t)random_below(2000));
}

/* Returns whether the client held a mapped lease. */
static bool await_death(const struct slot *slot)
{
    const uint64_t now = now_us();
    if (slot->due_us > now)
        usleep((useconds_t)(slot->due_us - now));
    if (slot->waits_for_lease)
        await_lease(slot);
    child_kill(&slot->child); /* fails if the client had ended by itself */
    return atomic_exchange(slot->held, 0) > 0;
}

static struct slot *next_due(struct slot *slots, int count)
{
    struct slot *next = &slots[0];
    for (int i = 1; i < count; i++)
        if (slots[i].due_us < next->due_us)
            next = &slots[i];
    return next;
}

static atomic_uint *share_counters(void)
{
    void *memory = mmap(NULL, MOST_SLOTS * sizeof(atomic_uint), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

/* Returns the number of clients that held a mapped lease when they were killed. */
static int kill_clients(const struct harness *h, int deaths)
{
    struct slot slots[MOST_SLOTS];
    int side_by_side = harness_is_cuda() ? MOST_SLOTS : 6, mapped = 0;
    atomic_uint *held = share_counters();
    for (int i = 0; i < side_by_side; i++) {
        slots[i] = (struct slot){.h = h, .held = &held[i]};
        start_client(&slots[i]);
    }
    for (int i = 0; i < deaths - side_by_side; i++) {
        struct slot *slot = next_due(slots, side_by_side);
        mapped += await_death(slot);
        start_client(slot);
    }
    for (int i = 0; i < side_by_side; i++)
        mapped += await_death(&slots[i]);
    munmap(held, MOST_SLOTS * sizeof *held);
    return mapped;
}

/* A client that uses every function once. The daemon opens all descriptors that it keeps. */
static void warm_up(int channel, void *context)
{
    const struct harness *h = context;
    atomic_uint held = 0;
    struct client c = {.held = &held};
    (void)channel;
    connect_anew(&c, h->socket);
    for (int i = 0; i < 2 * transport_count(); i++) {
        const shuf_request request = {
            .permutation = {.n = MOST_VALUES, .seed = 1, .dtype = SHUF_U32}};
        const shuf_lease_options options = {.transports = any_transport[i / 2], .event = i % 2};
        client_expect_ok(c.handle, shuf_lease_take(c.handle, &request, &options, &c.leases[0]));
        read_lease(&c, c.leases[0]);
        permute_random(&c);
        summarize_random(&c);
    }
    shuf_close(c.handle);
}

static void expect_baseline(const struct harness *h, unsigned descriptors)
{
    WIRE_AWAIT(h, s, s.leases == 0 && s.queued == 0 && s.clients == 1);
    WIRE_AWAIT(h, s,
               s.memory_used == 0 && s.host_used == 0 && s.blocks == 0 && s.pending_free == 0);
    for (unsigned waited = 0; descriptors && wire_descriptors(h->pid) > descriptors;) {
        if (waited == HARNESS_WAIT_MS)
            wire_show_descriptors(h->pid);
        wire_wait(&waited, "the number of descriptors from before");
    }
}

/* Most clients must live until the daemon has computed a result for them. */
static void report(const struct harness *h, int deaths, int mapped)
{
    Shuf__StatusReply s = wire_status(h);
    printf("%d deaths, %d with a mapped lease: %d requests served, %d results computed, %d joined, "
           "%d hits\n",
           deaths, mapped, (int)s.served, (int)s.computed, (int)s.joined, (int)s.hits);
    assert_true(s.computed > (uint64_t)deaths / 4);
    assert_true(mapped >= deaths / 2);
}

static void check_killed_clients(const char *config, int deaths)
{
    struct harness h;
    if (deaths_wanted > 0)
        deaths = deaths_wanted;
    wire_start(&h, harness_backend, config);
    struct child child = child_start(warm_up, &h);
    child_join(&child);
    expect_baseline(&h, 0);
    usleep(50000); /* the daemon has closed the last connection */
    unsigned descriptors = wire_descriptors(h.pid);
    fprintf(stderr, "%u descriptors at first\n", descriptors);
    const int mapped = kill_clients(&h, deaths);
    expect_baseline(&h, descriptors);
    report(&h, deaths, mapped);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void killed_clients_leave_nothing(void **state)
{
    (void)state;
    random_start("killed_clients_leave_nothing");
    check_killed_clients("cache_time = 0\n", harness_is_cuda() ? 200 : 2000);
}

/* The daemon keeps blocks and reuses them for other clients. */
static void killed_clients_leave_nothing_in_the_cache(void **state)
{
    (void)state;
    random_start("killed_clients_leave_nothing_in_the_cache");
    check_killed_clients("cache_time = 25ms\n", harness_is_cuda() ? 50 : 500);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_clients_leave_nothing),
        cmocka_unit_test(killed_clients_leave_nothing_in_the_cache),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    deaths_wanted = argc > 2 ? atoi(argv[2]) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
