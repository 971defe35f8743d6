/* SPDX-License-Identifier: MIT
 *
 * Leases without libshuf. The test checks which clients may release or list a lease. A lease ends
 * with its process, and its memory outlives the daemon.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = 1000 };

static const char *backend;
static struct harness shared;

static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

static int start_shared(void **state)
{
    (void)state;
    wire_start(&shared, backend, "socket_mode = 0666\n"); /* another user connects too */
    return chmod(shared.directory, 0755);
}

static int stop_shared(void **state)
{
    (void)state;
    return harness_stop(&shared) ? 0 : -1;
}

static uint64_t lease_id(struct wire *w, uint64_t seed)
{
    return wire_lease(w, N, seed, backend_transport)->lease;
}

static void expect_no_such_lease(struct wire *w, uint64_t *ids, size_t count, uint64_t wrong)
{
    char text[96];
    snprintf(text, sizeof text, "lease %" PRIu64 ": expected one that this connection holds",
             wrong);
    wire_send_release(w, ids, count, NULL, 0);
    wire_expect(w, SHUF_INVALID, text);
}

/* ---- releases ----------------------------------------------------------------- */

static void released_leases_end(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&shared);
    uint64_t before = wire_status(&shared).leases;
    uint64_t a = lease_id(w, 1), b = lease_id(w, 1), c = lease_id(w, 2);
    assert_true(a != b && b != c && a != c);
    assert_int_equal(wire_status(&shared).leases, before + 3);
    uint64_t two[] = {c, a};
    wire_send_release(w, two, 2, NULL, 0);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->body_case, SHUF__REPLY__BODY_RELEASE);
    assert_int_equal(wire_status(&shared).leases, before + 1);
    wire_release(w, b, 0);
    wire_send_release(w, NULL, 0, NULL, 0); /* a release of no leases is valid */
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_status(&shared).leases, before);
    wire_close(w);
}

static void wrong_leases_are_refused(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&shared), *other = wire_greet(&shared);
    uint64_t own_lease = lease_id(w, 3), other_lease = lease_id(other, 3);
    uint64_t with_other_lease[] = {own_lease, other_lease},
             with_unknown[] = {own_lease, UINT64_MAX};
    uint64_t nothing = 0, twice[] = {own_lease, other_lease, own_lease},
             same[] = {own_lease, own_lease};
    uint64_t before = wire_status(&shared).leases;
    expect_no_such_lease(w, with_other_lease, 2, other_lease);
    expect_no_such_lease(w, with_unknown, 2, UINT64_MAX);
    expect_no_such_lease(w, &nothing, 1, 0);
    expect_no_such_lease(w, twice, 3, other_lease);
    expect_no_such_lease(w, same, 2, own_lease);
    assert_int_equal(wire_status(&shared).leases, before); /* no lease was released */
    wire_release(w, own_lease, 0);
    expect_no_such_lease(w, &own_lease, 1, own_lease); /* the lease has already ended */
    wire_release(other, other_lease, 0);
    wire_check_alive(w);
    wire_close(w);
    wire_close(other);
}

static void release_of_257_leases_is_refused(void **state)
{
    (void)state;
    uint64_t ids[257], blocks[257];
    struct wire *w = wire_greet(&shared);
    for (int i = 0; i < 257; i++) {
        ids[i] = lease_id(w, 3);
        blocks[i] = UINT64_MAX - (uint64_t)i; /* the daemon ignores unknown blocks */
    }
    uint64_t before = wire_status(&shared).leases;
    wire_send_release(w, ids, 257, NULL, 0);
    wire_expect(w, SHUF_INVALID, "release of 257 leases and 0 blocks: expected at most 256");
    wire_send_release(w, ids, 1, blocks, 257);
    wire_expect(w, SHUF_INVALID, "release of 1 lease and 257 blocks: expected at most 256");
    assert_int_equal(wire_status(&shared).leases, before);
    wire_send_release(w, ids, 256, blocks, 256);
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_status(&shared).leases, before - 256);
    wire_close(w);
}

static void request_releases_old_lease(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&shared);
    uint64_t id = lease_id(w, 4), unknown = UINT64_MAX, before = wire_status(&shared).leases;
    Shuf__Release back = SHUF__RELEASE__INIT;
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    permute.delivery.give_back = &back;
    back.n_lease = 1;
    back.lease = &unknown;
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_INVALID, "lease 18446744073709551615");
    assert_int_equal(wire_status(&shared).leases, before);
    back.lease = &id;
    wire_send_result(w, &permute);
    assert_int_not_equal(wire_expect(w, SHUF_OK, "")->result->lease, id);
    assert_int_equal(wire_status(&shared).leases, before);
    wire_send_result(w, &permute); /* the lease to release has already ended */
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    wire_close(w);
}

/* ---- limits ------------------------------------------------------------------- */

static void lease_limit_is_refused(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, backend, "leases = 3\n");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    uint64_t ids[3];
    for (uint64_t i = 0; i < 3; i++)
        ids[i] = lease_id(w, i);
    uint64_t computed = wire_status(&h).computed;
    /* The seed is new, so the client has no descriptor of the result's block. */
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_BUSY, "leases 3: the most that one connection may hold");
    /* The daemon refused the request before the computation. */
    assert_int_equal(wire_status(&h).computed, computed);
    wire_release(w, ids[1], 0);
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_true(reply->result->descriptor); /* the first descriptor of this block */
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void empty_shard_has_no_lease(void **state)
{
    (void)state;
    struct shuf__result_message permute = wire_permutation(3, backend_transport);
    struct wire *w = wire_greet(&shared);
    shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SHARD);
    permute.shard.world = 4;
    permute.shard.rank = 3;
    permute.shard.drop_last = true;
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->result->transport, SHUF__TRANSPORT__TRANSPORT_INLINE);
    assert_int_equal(reply->result->lease + reply->result->block + reply->payload_bytes, 0);
    assert_int_equal(reply->result->count, 0);
    wire_close(w);
}

/* ---- the list ----------------------------------------------------------------- */

static const Shuf__LeasesReply *list_page(struct wire *w, uint64_t after)
{
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    leases.after = after;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    wire_send(w, &request);
    return wire_expect(w, SHUF_OK, "")->leases;
}

/* Returns how many leases in the list have this seed. */
static uint64_t count_leases_of_seed(struct wire *w, uint64_t seed, uint64_t *all)
{
    uint64_t after = 0, found = 0;
    *all = 0;
    do {
        const Shuf__LeasesReply *page = list_page(w, after);
        for (size_t i = 0; i < page->n_lease; i++)
            found += page->lease[i]->request->permute->permutation->seed == seed;
        *all += page->n_lease;
        assert_true(page->next == 0 || page->next != after);
        after = page->next;
    } while (after != 0);
    return found;
}

static void list_entry_describes_lease(void **state)
{
    (void)state;
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    struct wire *w = wire_greet(&shared);
    const uint64_t before = wire_lease(w, N, 1, backend_transport)->lease;
    permute.permutation.algorithm = (char *)"lcg";
    permute.permutation.epoch = 8;
    permute.permute.epochs = 3;
    wire_send_result(w, &permute);
    Shuf__ResultReply reply = *wire_expect(w, SHUF_OK, "")->result;
    const Shuf__LeasesReply *page = list_page(w, before);
    assert_int_equal(page->n_lease, 1);
    assert_int_equal(page->next, 0);
    const Shuf__LeaseEntry *entry = page->lease[0];
    assert_int_equal(entry->id, reply.lease);
    assert_int_equal(entry->pid, getpid());
    assert_int_equal(entry->uid, getuid());
    assert_int_equal(entry->transport, backend_transport);
    assert_true(entry->ready && !entry->prefetch && entry->age_ms < HARNESS_WAIT_MS);
    assert_int_equal(entry->block, reply.block);
    assert_int_equal(entry->block_bytes, reply.block_bytes);
    assert_true(entry->rows == 3 && entry->count == N);
    assert_null(entry->request->delivery);
    assert_int_equal(entry->request->what_case, SHUF__RESULT__WHAT_PERMUTE);
    const Shuf__Permute *asked = entry->request->permute;
    assert_string_equal(asked->permutation->algorithm, "lcg");
    assert_true(asked->permutation->n == N && asked->permutation->seed == 7 &&
                asked->permutation->epoch == 8 && asked->epochs == 3);
    assert_int_equal(asked->view_case, SHUF__PERMUTE__VIEW__NOT_SET);
    wire_close(w);
}

static void list_as_nobody(int channel, void *context)
{
    uint64_t all;
    struct wire *w = wire_greet(&shared);
    (void)context;
    wire_lease(w, N, 11, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_lease(w, N, 11, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    assert_int_equal(count_leases_of_seed(w, 11, &all), 2);
    assert_int_equal(all, 2); /* leases of other users are not in the list */
    child_send(channel, 0);
    child_receive(channel);
    wire_close(w);
}

/* One connection holds all leases when it closes. */
static void close_ends_1000_leases(void **state)
{
    (void)state;
    uint64_t all;
    WIRE_AWAIT(&shared, s, s.leases == 0);
    struct wire *w = wire_greet(&shared), *other = wire_greet(&shared);
    for (int i = 0; i < 1000; i++)
        lease_id(w, 10);
    for (int i = 0; i < 41; i++)
        lease_id(other, 12);
    assert_int_equal(count_leases_of_seed(other, 10, &all), 1000);
    assert_int_equal(all, 1041);
    if (geteuid() == 0) {
        struct child child = child_start_as(CHILD_NOBODY, list_as_nobody, NULL);
        child_receive(child.channel);
        assert_int_equal(count_leases_of_seed(other, 11, &all), 2);
        assert_int_equal(all, 1043); /* root sees all leases */
        child_send(child.channel, 0);
        child_join(&child);
    }
    wire_close(w);
    WIRE_AWAIT(&shared, s, s.leases == 41);
    wire_close(other);
    WIRE_AWAIT(&shared, s, s.leases == 0);
}

/* ---- ends --------------------------------------------------------------------- */

static void check_outlives_daemon(int signal)
{
    enum { MANY = 1000000 };
    struct harness h;
    assert_true(harness_start(&h, backend, NULL));
    struct wire *w = wire_greet(&h);
    const Shuf__ResultReply *reply = wire_lease(w, MANY, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    uint64_t bytes = reply->bytes, size = reply->block_bytes;
    const void *view = wire_map(w, size);
    void *copy = malloc(bytes);
    memcpy(copy, view, bytes);
    int status = harness_kill(&h, signal);
    assert_int_equal(status, signal == SIGKILL ? SIGKILL : 0);
    assert_memory_equal(view, copy, bytes);
    free(copy);
    wire_unmap(view, size);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void memory_outlives_killed_daemon(void **state)
{
    (void)state;
    check_outlives_daemon(SIGKILL);
}

static void memory_outlives_ended_daemon(void **state)
{
    (void)state;
    check_outlives_daemon(SIGTERM);
}

/* The results of many leases end one part after the other, but all before the daemon has ended. */
static void daemon_ends_with_results_of_leases(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, backend, NULL));
    struct wire *w = wire_greet(&h);
    for (uint64_t i = 0; i < 500; i++)
        wire_lease(w, N, i, backend_transport);
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_true(harness_stop(&h));
}

/* A stopping daemon replies to an accepted request, and its lease is valid. */
static void drain_serves_accepted_lease(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    struct shuf__result_message permute =
        wire_permutation(100000, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    assert_true(harness_start(&h, backend, NULL));
    struct wire *running = wire_greet(&h), *waiting = wire_greet(&h);
    wire_send_result(running, &endless);
    wire_await_queued(&h, 1);
    wire_send_result(waiting, &permute);
    wire_await_queued(&h, 2);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    wire_close(running);
    const Shuf__ResultReply *reply = wire_expect(waiting, SHUF_OK, "")->result;
    assert_true(reply->lease && reply->descriptor);
    const uint32_t *view = wire_map(waiting, UNIT);
    wire_expect_end(waiting);
    assert_int_equal(harness_kill(&h, 0), 0);
    assert_int_not_equal(view[0], view[1]);
    wire_unmap(view, UNIT);
    wire_close(waiting);
    assert_true(harness_stop(&h));
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Takes leases, and forks a child that inherits the connection. */
static void lease_and_fork(int channel, void *context)
{
    (void)context;
    struct wire *w = wire_greet(&shared);
    lease_id(w, 13);
    lease_id(w, 14);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        pause();
        _exit(0);
    }
    child_send(channel, (uint64_t)grandchild);
    pause();
}

/* The daemon must notice most of ten deaths in time. A busy machine may make it late a few
 * times. */
static void leases_end_with_their_process(void **state)
{
    (void)state;
    enum { DEATHS = 10 };
    const uint64_t limit = TEST_SANITIZED ? 2000 : 100;
    unsigned late = 0;
    for (int i = 0; i < DEATHS; i++) {
        WIRE_AWAIT(&shared, s, s.leases == 0 && s.clients == 1);
        struct child child = child_start(lease_and_fork, NULL);
        pid_t grandchild = (pid_t)child_receive(child.channel);
        WIRE_AWAIT(&shared, s, s.leases == 2 && s.clients == 2);
        uint64_t killed = now_ms();
        child_kill(&child);
        WIRE_AWAIT(&shared, s, s.leases == 0 && s.clients == 1);
        late += now_ms() - killed > limit;
        kill(grandchild, SIGKILL);
    }
    assert_true(late <= DEATHS / 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_leases_end),
        cmocka_unit_test(wrong_leases_are_refused),
        cmocka_unit_test(release_of_257_leases_is_refused),
        cmocka_unit_test(request_releases_old_lease),
        cmocka_unit_test(lease_limit_is_refused),
        cmocka_unit_test(empty_shard_has_no_lease),
        cmocka_unit_test(list_entry_describes_lease),
        cmocka_unit_test(close_ends_1000_leases),
        cmocka_unit_test(memory_outlives_killed_daemon),
        cmocka_unit_test(memory_outlives_ended_daemon),
        cmocka_unit_test(daemon_ends_with_results_of_leases),
        cmocka_unit_test(drain_serves_accepted_lease),
        cmocka_unit_test(leases_end_with_their_process),
    };
    backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(backend);
    return cmocka_run_group_tests(tests, start_shared, stop_shared);
}
