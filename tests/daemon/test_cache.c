/* SPDX-License-Identifier: MIT
 *
 * The result cache. Equal requests share one computation, and later requests find its result. The
 * least recently used result is evicted first. Prefetches compute results early: a connection has
 * at most four, and they end with the connection.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    UNIT = 2 << 20,
    BLOCK_N = UNIT / 4,   /* values that fill a block of one unit */
    LARGE_N = BLOCK_N * 2 /* values that fill a block of two units */
};

static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

/* A budget of four blocks. */
static const char small[] = "host_memory = 8Mi\ndevice_memory = 8Mi\n";

/* Leases the result and releases it at once. Returns whether the cache had it. */
static bool is_cached(struct wire *w, uint64_t n, uint64_t seed)
{
    const Shuf__ResultReply *reply = wire_lease(w, n, seed, backend_transport);
    bool was_cached = reply->shared;
    wire_release(w, reply->lease, reply->block);
    return was_cached;
}

static void expect_refused(struct wire *w, uint64_t n, uint64_t seed, shuf_status status,
                           const char *text)
{
    struct shuf__result_message permute = wire_permutation(n, backend_transport);
    permute.permutation.seed = seed;
    wire_send_result(w, &permute);
    wire_expect(w, status, text);
}

/* ---- Equal requests ---- */

static void equal_requests_share_a_result(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *a = wire_greet(&h), *b = wire_greet(&h);
    Shuf__ResultReply first = *wire_lease(a, BLOCK_N, 1, backend_transport);
    Shuf__ResultReply again = *wire_lease(b, BLOCK_N, 1, backend_transport);
    Shuf__ResultReply other = *wire_lease(b, BLOCK_N, 2, backend_transport);
    assert_true(!first.shared && again.shared && !other.shared);
    assert_true(again.block == first.block && again.lease != first.lease);
    assert_int_not_equal(other.block, first.block);
    Shuf__StatusReply s = wire_status(&h);
    assert_true(s.computed == 2 && s.hits == 1 && s.joined == 0);
    assert_true(s.blocks == 2 && s.leases == 3 && s.memory_used == 2 * UNIT &&
                s.host_idle + s.device_idle == 0);
    wire_close(a);
    wire_close(b);
    assert_true(harness_stop(&h));
}

/* The cache key has every parameter that decides a value. */
static void unequal_requests_share_nothing(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message requests[10];
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *w = wire_greet(&h);
    for (int i = 0; i < 10; i++)
        requests[i] = wire_permutation(100, backend_transport);
    requests[1].permutation.n = 101;
    requests[2].permutation.seed = 8;
    requests[3].permutation.epoch = 1;
    requests[4].permute.epochs = 2;
    requests[5].permutation.algorithm = (char *)"lcg";
    requests[6].permute.dtype = SHUF__DTYPE__DTYPE_U64;
    shuf__result_message_add_view(&requests[7], SHUF__PERMUTE__VIEW_SLICE);
    requests[7].slice.count = 10;
    requests[7].slice.stride = 2;
    shuf__result_message_add_view(&requests[8], SHUF__PERMUTE__VIEW_SHARD);
    requests[8].shard.world = 10;
    requests[9].permute.dtype = SHUF__DTYPE__DTYPE_I64; /* the bits of requests[6] */
    for (int i = 0; i < 10; i++) {
        wire_send_result(w, &requests[i]);
        assert_int_equal(wire_expect(w, SHUF_OK, "")->result->shared, i == 9);
    }
    assert_int_equal(wire_status(&h).computed, 9);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void lease_uses_result_of_summary(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *w = wire_greet(&h);
    struct shuf__result_message summary = wire_permutation(100000, SHUF__TRANSPORT__TRANSPORT_NONE);
    summary.delivery.fingerprint = true;
    wire_send_result(w, &summary);
    uint64_t fingerprint = wire_expect(w, SHUF_OK, "")->result->fingerprint;
    assert_true(is_cached(w, 100000, 7));
    assert_int_equal(wire_status(&h).computed, 1);
    /* The result is in the cache, and the daemon knows its fingerprint. */
    wire_send_result(w, &summary);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_true(reply->shared && reply->fingerprint == fingerprint && reply->n_first == 4);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static struct golden find_golden(uint64_t n)
{
    struct golden row;
    FILE *table = golden_open("permute.txt");
    while (golden_next(table, &row) && (row.n != n || row.seed != 7 || row.epoch != 0))
        continue;
    fclose(table);
    assert_int_equal(row.n, n);
    return row;
}

/* Computing MANY values takes longer than eight processes need to send their requests. */
enum { EIGHT = 8, MANY = 16777217 };

static void request_many(int channel, void *context)
{
    struct harness *h = context;
    struct golden row = find_golden(MANY);
    struct shuf__result_message permute = wire_permutation(MANY, backend_transport);
    struct wire *w = wire_greet(h);
    permute.permutation.algorithm = row.algorithm;
    permute.delivery.fingerprint = true;
    child_send(channel, 0);
    child_receive(channel);
    wire_send_result(w, &permute);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_int_equal(reply->fingerprint, row.fingerprint);
    child_send(channel, reply->block);
    child_receive(channel);
    wire_close(w);
}

/* Eight processes send an equal request. If `held`, a job blocks the engine until all have sent
 * theirs. */
static void check_eight_processes(bool blocked)
{
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    struct child children[EIGHT];
    uint64_t block = 0;
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *w = wire_greet(&h);
    for (int i = 0; i < EIGHT; i++)
        children[i] = child_start(request_many, &h);
    for (int i = 0; i < EIGHT; i++)
        child_receive(children[i].channel);
    if (blocked) {
        wire_send_result(w, &endless);
        wire_await_queued(&h, 1);
    }
    for (int i = 0; i < EIGHT; i++)
        child_send(children[i].channel, 0);
    if (blocked)
        WIRE_AWAIT(&h, s, s.joined == EIGHT - 1);
    wire_close(w);
    for (int i = 0; i < EIGHT; i++) {
        uint64_t its = child_receive(children[i].channel);
        assert_true(block == 0 || its == block);
        block = its;
    }
    Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.computed, 1);
    assert_int_equal(s.hits + s.joined, EIGHT - 1);
    assert_int_equal(s.leases, EIGHT);
    assert_int_equal(s.blocks, 1);
    for (int i = 0; i < EIGHT; i++) {
        child_send(children[i].channel, 0);
        child_join(&children[i]);
    }
    WIRE_AWAIT(&h, after,
               after.leases == 0 && after.host_idle + after.device_idle == after.memory_used);
    assert_true(harness_stop(&h));
}

static void eight_processes_share_a_result(void **state)
{
    (void)state;
    check_eight_processes(false);
}

static void eight_waiting_processes_share_a_result(void **state)
{
    (void)state;
    check_eight_processes(true);
}

/* ---- Clients that leave ---- */

/* Two clients wait for the same result behind the job of `blocker`. One leaves, and the other still
 * gets the result. It is larger than those that a GPU computes beside the endless one. */
static void waiter_is_served_after_other_leaves(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation(),
                                permute = wire_permutation(2000000, backend_transport);
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *blocker = wire_greet(&h), *first = wire_greet(&h), *second = wire_greet(&h);
    wire_send_result(blocker, &endless);
    wire_await_queued(&h, 1);
    wire_send_result(first, &permute);
    wire_await_queued(&h, 2);
    wire_send_result(second, &permute);
    WIRE_AWAIT(&h, s, s.joined == 1);
    wire_close(first);
    WIRE_AWAIT(&h, s, s.clients == 3);
    assert_int_equal(wire_status(&h).queued, 2);
    wire_close(blocker);
    assert_true(wire_expect(second, SHUF_OK, "")->result->shared);
    wire_close(second);
    assert_true(harness_stop(&h));
}

static void last_waiter_cancels_job(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *first = wire_greet(&h), *second = wire_greet(&h);
    wire_send_result(first, &endless);
    wire_await_queued(&h, 1);
    wire_send_result(second, &endless);
    WIRE_AWAIT(&h, s, s.joined == 1);
    wire_close(first);
    WIRE_AWAIT(&h, s, s.clients == 2);
    usleep(50000); /* time enough for a wrong cancellation */
    assert_int_equal(wire_status(&h).queued, 1);
    wire_close(second);
    wire_await_queued(&h, 0);
    assert_int_equal(wire_status(&h).computed, 0);
    assert_true(harness_stop(&h));
}

/* ---- The budget ---- */

static void least_recently_used_is_evicted(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, small);
    struct wire *w = wire_greet(&h);
    for (uint64_t seed = 1; seed <= 4; seed++)
        assert_false(is_cached(w, BLOCK_N, seed));
    assert_true(is_cached(w, BLOCK_N, 1));  /* now the most recently used */
    assert_false(is_cached(w, BLOCK_N, 5)); /* evicts 2 */
    assert_int_equal(wire_status(&h).evicted, 1);
    assert_true(is_cached(w, BLOCK_N, 1));
    assert_true(is_cached(w, BLOCK_N, 3));
    assert_true(is_cached(w, BLOCK_N, 4));
    assert_false(is_cached(w, LARGE_N, 6)); /* evicts 5 and 1 */
    assert_int_equal(wire_status(&h).evicted, 3);
    assert_true(is_cached(w, BLOCK_N, 3));
    assert_true(is_cached(w, BLOCK_N, 4));
    assert_true(is_cached(w, LARGE_N, 6));
    assert_int_equal(wire_status(&h).memory_used, 4 * UNIT);
    assert_false(is_cached(w, BLOCK_N, 1));
    assert_int_equal(wire_status(&h).evicted, 4);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void leased_results_are_not_evicted(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, small);
    struct wire *w = wire_greet(&h), *owner = wire_greet(&h);
    uint64_t block = wire_lease(owner, BLOCK_N, 1, backend_transport)->block;
    for (uint64_t seed = 2; seed <= 12; seed++) {
        const Shuf__ResultReply *reply = wire_lease(w, BLOCK_N, seed, backend_transport);
        assert_int_not_equal(reply->block, block);
        wire_release(w, reply->lease, reply->block);
    }
    const Shuf__ResultReply *reply = wire_lease(w, BLOCK_N, 1, backend_transport);
    assert_true(reply->shared && reply->block == block);
    assert_true(wire_status(&h).memory_used <= 4 * UNIT);
    wire_close(w);
    wire_close(owner);
    assert_true(harness_stop(&h));
}

/* Holds three of four blocks until the parent has received its refusal. */
static void hold_three_blocks(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    for (uint64_t seed = 1; seed <= 3; seed++)
        wire_lease(w, BLOCK_N, seed, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    child_send(channel, 0);
    child_receive(channel);
    wire_close(w);
}

static void other_user_holds_the_budget(void **state)
{
    (void)state;
    struct harness h;
    if (geteuid() != 0 || backend_transport != SHUF__TRANSPORT__TRANSPORT_MEMFD)
        skip();
    wire_start(&h, harness_backend, "host_memory = 8Mi\nuser_memory = 0\nsocket_mode = 0666\n");
    assert_int_equal(chmod(h.directory, 0755), 0);
    struct child other = child_start_as(CHILD_NOBODY, hold_three_blocks, &h);
    child_receive(other.channel);
    struct wire *w = wire_greet(&h);
    expect_refused(w, LARGE_N, 9, SHUF_BUSY, "memory, 6 MiB of 8 MiB are in use by other ");
    child_send(other.channel, 0);
    child_join(&other);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void request_over_budget_is_refused(void **state)
{
    (void)state;
    struct harness h;
    uint64_t ids[4];
    wire_start(&h, harness_backend, small);
    struct wire *w = wire_greet(&h), *owner = wire_greet(&h);
    expect_refused(w, LARGE_N * 2 + 1, 1, SHUF_NO_MEMORY, "needs 10 MiB of ");
    for (uint64_t i = 0; i < 4; i++)
        ids[i] = wire_lease(owner, BLOCK_N, i, backend_transport)->lease;
    expect_refused(w, BLOCK_N, 9, SHUF_BUSY,
                   "memory, 8 MiB of 8 MiB are held by this user's own leases and ");
    expect_refused(w, LARGE_N, 9, SHUF_BUSY, "held by this user's own leases and requests (");
    assert_true(is_cached(w, BLOCK_N, 3)); /* a cached result is still served */
    wire_send_release(owner, ids, 1, NULL, 0);
    wire_expect(owner, SHUF_OK, "");
    /* Reuses the block of the released lease, which the client keeps mapped. */
    assert_false(is_cached(w, BLOCK_N, 9));
    expect_refused(w, LARGE_N, 9, SHUF_BUSY, "release a lease"); /* eviction cannot free enough */
    assert_true(is_cached(w, BLOCK_N, 9)); /* so the result stays in the cache */
    wire_send_release_all(owner);
    wire_expect(owner, SHUF_OK, "");
    wire_close(owner);
    WIRE_AWAIT(&h, s, s.leases == 0);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* The daemon refuses a request above the limit at once, although the engine is busy. */
static void request_above_limit_is_refused_at_once(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    wire_start(&h, harness_backend, small);
    struct wire *blocker = wire_greet(&h), *w = wire_greet(&h);
    wire_send_result(blocker, &endless);
    wire_await_queued(&h, 1);
    expect_refused(w, LARGE_N * 2 + 1, 1, SHUF_NO_MEMORY, "the limit is 8 MiB");
    assert_int_equal(wire_status(&h).queued, 1);
    wire_close(blocker);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- Time ---- */

static void no_cache_time_keeps_nothing(void **state)
{
    (void)state;
    static const uint64_t first[] = {5, 9, 8, 0};
    struct harness h;
    wire_start(&h, harness_backend, "cache_time = 0\n");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message summary = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    summary.permutation.algorithm = (char *)"philox24";
    for (int i = 0; i < 3; i++) {
        wire_send_result(w, &summary);
        const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
        /* The daemon keeps the first values after it has freed the result. */
        assert_memory_equal(reply->first, first, sizeof first);
        assert_false(is_cached(w, BLOCK_N, 1));
        wire_check_alive(w);
        WIRE_AWAIT(&h, s, s.memory_used == 0 && s.blocks == 0);
    }
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void result_is_evicted_after_cache_time(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "cache_time = 3s\n");
    struct wire *w = wire_greet(&h);
    is_cached(w, BLOCK_N, 1);
    assert_int_equal(wire_idle_bytes(&h), UNIT);
    uint64_t leased = wire_lease(w, BLOCK_N, 2, backend_transport)->lease;
    WIRE_AWAIT(&h, s, s.host_idle + s.device_idle == 0 && s.memory_used == UNIT && s.blocks == 1);
    /* It expired, and was not evicted for another request. */
    assert_int_equal(wire_status(&h).evicted, 0);
    assert_false(is_cached(w, BLOCK_N, 1));
    wire_release(w, leased, 0);
    wire_close(w);
    WIRE_AWAIT(&h, s, s.host_idle + s.device_idle == 0);
    assert_true(harness_stop(&h));
}

/* ---- Prefetches ---- */

/* N: larger than what a GPU computes beside an endless job. */
enum { N = 2000000, PREFETCHES = 4 };

static int start(void **state)
{
    static struct harness h;
    *state = harness_start(&h, harness_backend, NULL) ? &h : NULL;
    return *state ? 0 : -1;
}

static int stop(void **state)
{
    return harness_stop(*state) ? 0 : -1;
}

static void prefetch(struct wire *w, struct shuf__result_message *permute)
{
    permute->delivery.prefetch = true;
    wire_send_result(w, permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->result->transport, SHUF__TRANSPORT__TRANSPORT_NONE);
    assert_int_not_equal(reply->result->lease, 0);
    assert_int_equal(reply->result->block + reply->payload_bytes, 0);
    assert_int_equal(reply->result->rows, 1);
}

static void prefetch_seed(struct wire *w, uint64_t seed)
{
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    permute.permutation.seed = seed;
    prefetch(w, &permute);
}

static void block_engine(struct harness *h, struct wire *w)
{
    struct shuf__result_message endless = wire_endless_permutation();
    wire_send_result(w, &endless);
    wire_await_queued(h, 1);
}

/* The daemon replies at once although another job blocks the engine. A lease of the same result
 * waits until it is computed. */
static void prefetch_replies_at_once_and_is_joined(void **state)
{
    struct harness *h = *state;
    struct wire *blocker = wire_greet(h), *w = wire_greet(h);
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    block_engine(h, blocker);
    prefetch_seed(w, 7);
    Shuf__StatusReply s = wire_status(h);
    assert_true(s.queued == 2 && s.leases == 1 && s.computed == 0);
    wire_send_result(w, &permute);
    WIRE_AWAIT(h, now, now.joined == 1);
    wire_close(blocker);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_true(reply->shared && reply->lease);
    s = wire_status(h);
    assert_true(s.computed == 1 && s.leases == 1); /* the prefetch has ended */
    wire_close(w);
}

static void prefetched_result_is_cached(void **state)
{
    struct harness *h = *state;
    struct wire *w = wire_greet(h), *other = wire_greet(h);
    prefetch_seed(w, 1);
    WIRE_AWAIT(h, s, s.computed == 1 && s.queued == 0);
    assert_true(wire_lease(w, N, 1, backend_transport)->shared);
    assert_true(wire_lease(other, N, 1, backend_transport)->shared);
    Shuf__StatusReply s = wire_status(h);
    assert_true(s.hits == 2 && s.joined == 0 && s.computed == 1 && s.leases == 2);
    prefetch_seed(w, 1); /* a prefetch also keeps a result that is in the cache */
    s = wire_status(h);
    assert_true(s.hits == 3 && s.computed == 1 && s.leases == 3);
    wire_close(w);
    wire_close(other);
    WIRE_AWAIT(h, end, end.leases == 0);
}

/* The lowest number of no open descriptor. */
static rlim_t free_descriptor(pid_t pid)
{
    char path[64];
    for (rlim_t number = 0;; number++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/%ld", (long)pid, (long)number);
        if (access(path, F_OK) != 0)
            return number;
    }
}

/* The allocation of the prefetched result fails, because it needs two descriptors at a time. */
static void lease_follows_a_failed_prefetch(void **state)
{
    enum { SMALL_N = 1000 }; /* the loop's thread computes it */
    struct harness *h = *state;
    struct rlimit old, one;
    if (strcmp(harness_backend, "cpu") != 0)
        skip();
    struct wire *w = wire_greet(h);
    struct shuf__result_message permute = wire_permutation(SMALL_N, backend_transport);
    permute.permutation.seed = 1;
    assert_int_equal(prlimit(h->pid, RLIMIT_NOFILE, NULL, &old), 0);
    one = (struct rlimit){.rlim_cur = free_descriptor(h->pid) + 1, .rlim_max = old.rlim_max};
    assert_int_equal(prlimit(h->pid, RLIMIT_NOFILE, &one, NULL), 0);
    prefetch(w, &permute);
    WIRE_AWAIT(h, s, s.queued == 0);
    assert_int_equal(prlimit(h->pid, RLIMIT_NOFILE, &old, NULL), 0);
    assert_int_equal(wire_status(h).computed, 0);
    assert_int_not_equal(wire_lease(w, SMALL_N, 1, backend_transport)->lease, 0);
    wire_close(w);
}

/* Lists the seeds of the leases that are prefetches. */
static size_t list_prefetched_seeds(struct wire *w, uint64_t *seeds, size_t room)
{
    size_t count = 0;
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    wire_send(w, &request);
    const Shuf__LeasesReply *page = wire_expect(w, SHUF_OK, "")->leases;
    for (size_t i = 0; i < page->n_lease && count < room; i++)
        if (page->lease[i]->prefetch)
            seeds[count++] = page->lease[i]->request->permute->permutation->seed;
    return count;
}

static void oldest_prefetch_is_released(void **state)
{
    struct harness h;
    uint64_t seeds[PREFETCHES + 1];
    (void)state;
    wire_start(&h, harness_backend, "cache_time = 0\n");
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    prefetch_seed(other, 100); /* counts as a prefetch of the other connection */
    for (uint64_t seed = 1; seed <= PREFETCHES + 2; seed++)
        prefetch_seed(w, seed);
    prefetch_seed(w, 6); /* an equal request is no new prefetch */
    assert_int_equal(list_prefetched_seeds(other, seeds, 1), 1);
    assert_int_equal(list_prefetched_seeds(w, seeds, PREFETCHES + 1), PREFETCHES + 1);
    for (uint64_t i = 0; i < PREFETCHES; i++)
        assert_int_equal(seeds[1 + i], 3 + i);
    /* The blocks of the older prefetches are freed. */
    WIRE_AWAIT(&h, s, s.queued == 0 && s.blocks == PREFETCHES + 1);
    assert_int_equal(wire_status(&h).leases, PREFETCHES + 1);
    wire_close(w);
    WIRE_AWAIT(&h, s, s.leases == 1 && s.blocks == 1);
    wire_close(other);
    WIRE_AWAIT(&h, s, s.leases == 0 && s.memory_used == 0);
    assert_true(harness_stop(&h));
}

/* A Drop frees also the results that the connection has prefetched, but not those of others. */
static void prefetch_ends_with_a_drop(void **state)
{
    struct harness *h = *state;
    struct wire *w = wire_greet(h), *other = wire_greet(h);
    Shuf__Drop drop = SHUF__DROP__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    uint64_t seeds[3];
    prefetch_seed(w, 1);
    prefetch_seed(w, 2);
    prefetch_seed(other, 3);
    WIRE_AWAIT(h, s, s.computed == 3 && s.queued == 0);
    request.body_case = SHUF__REQUEST__BODY_DROP;
    request.drop = &drop;
    wire_send(w, &request);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->drop->results, 2);
    assert_int_equal(list_prefetched_seeds(w, seeds, 3), 1);
    assert_int_equal(seeds[0], 3);
    WIRE_AWAIT(h, s, s.leases == 1 && s.blocks == 1);
    wire_close(w);
    wire_close(other);
}

static void prefetch_ends_with_its_connection(void **state)
{
    struct harness *h = *state;
    struct shuf__result_message endless = wire_endless_permutation();
    struct wire *w = wire_greet(h);
    prefetch(w, &endless);
    wire_await_queued(h, 1);
    prefetch_seed(w, 50);
    wire_await_queued(h, 2);
    wire_close(w);
    WIRE_AWAIT(h, s, s.queued == 0 && s.leases == 0);
    w = wire_greet(h);
    wire_check_alive(w);
    wire_close(w);
}

static void prefetch_endless(int channel, void *context)
{
    struct shuf__result_message endless = wire_endless_permutation();
    struct wire *w = wire_greet(context);
    prefetch(w, &endless);
    child_send(channel, 0);
    child_receive(channel);
    wire_close(w);
}

static void prefetch_ends_with_its_process(void **state)
{
    struct harness *h = *state;
    struct child child = child_start(prefetch_endless, h);
    child_receive(child.channel);
    wire_await_queued(h, 1);
    child_kill(&child);
    WIRE_AWAIT(h, s, s.queued == 0 && s.leases == 0);
}

/* A prefetch of a result above the budget fails like a lease. The connection stays open. */
static void prefetch_over_budget_is_refused(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "host_memory = 4Mi\ndevice_memory = 4Mi\n");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message large = wire_permutation(10000000, backend_transport);
    for (int i = 0; i < 2; i++) {
        large.delivery.prefetch = i == 0;
        wire_send_result(w, &large);
        wire_expect(w, SHUF_NO_MEMORY, "the limit is 4 MiB: raise ");
    }
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(harness_backend);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_requests_share_a_result),
        cmocka_unit_test(unequal_requests_share_nothing),
        cmocka_unit_test(lease_uses_result_of_summary),
        cmocka_unit_test(eight_processes_share_a_result),
        cmocka_unit_test(eight_waiting_processes_share_a_result),
        cmocka_unit_test(waiter_is_served_after_other_leaves),
        cmocka_unit_test(last_waiter_cancels_job),
        cmocka_unit_test(least_recently_used_is_evicted),
        cmocka_unit_test(leased_results_are_not_evicted),
        cmocka_unit_test(request_over_budget_is_refused),
        cmocka_unit_test(other_user_holds_the_budget),
        cmocka_unit_test(request_above_limit_is_refused_at_once),
        cmocka_unit_test(no_cache_time_keeps_nothing),
        cmocka_unit_test(result_is_evicted_after_cache_time),
        cmocka_unit_test_setup_teardown(prefetch_replies_at_once_and_is_joined, start, stop),
        cmocka_unit_test_setup_teardown(prefetched_result_is_cached, start, stop),
        cmocka_unit_test_setup_teardown(lease_follows_a_failed_prefetch, start, stop),
        cmocka_unit_test(oldest_prefetch_is_released),
        cmocka_unit_test_setup_teardown(prefetch_ends_with_a_drop, start, stop),
        cmocka_unit_test_setup_teardown(prefetch_ends_with_its_connection, start, stop),
        cmocka_unit_test_setup_teardown(prefetch_ends_with_its_process, start, stop),
        cmocka_unit_test(prefetch_over_budget_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
