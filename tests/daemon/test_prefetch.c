/* SPDX-License-Identifier: MIT
 *
 * Prefetches. The daemon replies at once, and later leases share the result. A connection has at
 * most four prefetches, and they end with the connection.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* N: larger than what a GPU computes beside an endless job. */
enum { N = 2000000, PREFETCHES = 4 };

static const char *backend;
static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

static int start(void **state)
{
    static struct harness h;
    *state = harness_start(&h, backend, NULL) ? &h : NULL;
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
    if (strcmp(backend, "cpu") != 0)
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
    wire_start(&h, backend, "cache_time = 0\n");
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
    wire_start(&h, backend, "host_memory = 4Mi\ndevice_memory = 4Mi\n");
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prefetch_replies_at_once_and_is_joined, start, stop),
        cmocka_unit_test_setup_teardown(prefetched_result_is_cached, start, stop),
        cmocka_unit_test_setup_teardown(lease_follows_a_failed_prefetch, start, stop),
        cmocka_unit_test(oldest_prefetch_is_released),
        cmocka_unit_test_setup_teardown(prefetch_ends_with_a_drop, start, stop),
        cmocka_unit_test_setup_teardown(prefetch_ends_with_its_connection, start, stop),
        cmocka_unit_test_setup_teardown(prefetch_ends_with_its_process, start, stop),
        cmocka_unit_test(prefetch_over_budget_is_refused),
    };
    backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(backend);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
