/* SPDX-License-Identifier: MIT
 *
 * One user takes as much as the daemon grants, in every way. Other users and root still get a
 * result and a lease. The user can have its whole part again after it gives memory back, or
 * disconnects.
 */
#include "shuf.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)

enum {
    GREEDY_UID = 61000,
    SECOND_UID,
    OTHER_UID,
    CONNECTIONS = 40,
    PREFETCHES = 4, /* of a connection */
    FILES = 464,    /* 144 of them are for blocks */
    BIG_N = 1 << 20 /* values of 4 MiB */
};

static struct harness h;
static Shuf__Transport own;

static void start_with(const char *config)
{
    if (geteuid() != 0) /* only root can be several users */
        exit(HARNESS_SKIP);
    wire_start(&h, harness_backend, config);
    assert_int_equal(chmod(h.directory, 0755), 0);
    own = wire_backend_transport(harness_backend);
}

static int start(void **state)
{
    (void)state;
    start_with("socket_mode = 0666\nhost_memory = 256Mi\ndevice_memory = 256Mi\n"
               "host_cache = 256Mi\ndevice_cache = 256Mi\n");
    return 0;
}

static int start_large(void **state)
{
    (void)state;
    start_with("socket_mode = 0666\nhost_memory = 1Gi\ndevice_memory = 1Gi\n");
    return 0;
}

static int start_with_pool(void **state)
{
    (void)state;
    start_with("socket_mode = 0666\nhost_memory = 64Mi\ndevice_memory = 64Mi\n"
               "host_warm = 60Mi\ndevice_warm = 60Mi\n");
    return 0;
}

static int start_with_few_leases(void **state)
{
    (void)state;
    start_with("socket_mode = 0666\nuser_leases = 10\n");
    return 0;
}

/* A low limit of open files, which the daemon inherits, allows few blocks. The limit cannot be
 * raised again, so only the last test sets it. */
static int start_with_few_blocks(void **state)
{
    const struct rlimit few = {FILES, FILES};
    (void)state;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    start_with("socket_mode = 0666\nhost_memory = 1Gi\ndevice_memory = 1Gi\nclients = 64\n");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

/* ---- Ways to take memory ---- */

/* Sends requests until one is refused, and returns how many succeeded. The text of the refusal must
 * have these words. */
typedef uint64_t take(struct wire *w, uint64_t seed, const char *words);

static shuf_status status_of(const Shuf__Reply *reply, const char *words)
{
    if (reply->status == SHUF_BUSY && !strstr(reply->message, words))
        fail_msg("%s: expected '%s'", reply->message, words);
    assert_true(reply->status == SHUF_OK || reply->status == SHUF_BUSY);
    return (shuf_status)reply->status;
}

static shuf_status try_lease(struct wire *w, uint64_t n, uint64_t seed, bool prefetch,
                             const char *words)
{
    struct shuf__result_message permute = wire_permutation(n, own);
    permute.permutation.seed = seed;
    permute.delivery.prefetch = prefetch;
    wire_send_result(w, &permute);
    return status_of(wire_receive(w), words);
}

static uint64_t take_leases(struct wire *w, uint64_t n, uint64_t seed, const char *words)
{
    uint64_t taken = 0;
    while (taken < 4096 && try_lease(w, n, seed + taken, false, words) == SHUF_OK)
        taken++;
    return taken;
}

static uint64_t take_big(struct wire *w, uint64_t seed, const char *words)
{
    return take_leases(w, BIG_N, seed, words);
}

static uint64_t take_small(struct wire *w, uint64_t seed, const char *words)
{
    return take_leases(w, 10000, seed, words);
}

static uint64_t take_big_and_small(struct wire *w, uint64_t seed, const char *words)
{
    const uint64_t big = take_big(w, seed, words);
    return big + take_small(w, seed, words);
}

/* The results are released, but stay mapped. The daemon keeps at most 128 MiB of idle results of
 * one size. */
static uint64_t take_mappings(struct wire *w, uint64_t seed, const char *words)
{
    uint64_t taken = 0;
    for (;; taken++) {
        struct shuf__result_message permute =
            wire_permutation(BIG_N + taken % 4 * (BIG_N / 4), own);
        permute.permutation.seed = seed + taken;
        wire_send_result(w, &permute);
        const Shuf__Reply *reply = wire_receive(w);
        if (status_of(reply, words) != SHUF_OK)
            return taken;
        const uint64_t lease = reply->result->lease, bytes = reply->result->block_bytes;
        const bool is_fresh = reply->result->descriptor;
        if (is_fresh && own == SHUF__TRANSPORT__TRANSPORT_MEMFD)
            wire_map(w, bytes);
        wire_release(w, lease, 0);
        if (!is_fresh && own == SHUF__TRANSPORT__TRANSPORT_MEMFD)
            return taken; /* the daemon reuses a block, so it grants no new ones */
        if (taken == 256)
            return taken;
    }
}

static uint64_t take_prefetches(struct wire *w, uint64_t seed, const char *words)
{
    for (uint64_t i = 0; i < PREFETCHES; i++)
        try_lease(w, BIG_N, seed + i, true, words);
    return PREFETCHES;
}

static uint64_t take_buffers(struct wire *w, uint64_t seed, const char *words)
{
    uint64_t taken = 0;
    (void)seed;
    for (;; taken++) {
        struct shuf__result_message allocate =
            wire_result(SHUF__RESULT__WHAT_BUFFER, SHUF__TRANSPORT__TRANSPORT_MEMFD);
        allocate.buffer.bytes = 4 * MI;
        wire_send_result(w, &allocate);
        if (status_of(wire_receive(w), words) != SHUF_OK)
            return taken;
    }
}

/* ---- Users ---- */

struct greed {
    take *take;
    int connections;
    uint64_t least; /* expected of all connections together */
    const char *words;
};

/* Takes all it can, and reports that. Gives all back at the parent's first message, and reports
 * that. Ends at the second message. */
static void be_greedy(int channel, void *context)
{
    const struct greed *greed = context;
    struct wire *w[CONNECTIONS];
    uint64_t taken = 0;
    for (int i = 0; i < greed->connections; i++) {
        w[i] = wire_greet(&h);
        taken += greed->take(w[i], 1000 * getuid() + 100000 * (uint64_t)i, greed->words);
    }
    assert_true(taken >= greed->least);
    child_send(channel, taken);
    child_receive(channel);
    for (int i = 0; i < greed->connections; i++) {
        wire_send_release_all(w[i]);
        wire_expect(w[i], SHUF_OK, "");
    }
    child_send(channel, 0);
    child_receive(channel);
}

static struct child start_greedy(uid_t uid, const struct greed *greed)
{
    const struct child child = child_start_as(uid, be_greedy, (void *)(uintptr_t)greed);
    child_receive(child.channel);
    return child;
}

static void give_back(const struct child *child)
{
    child_send(child->channel, 0);
    child_receive(child->channel);
}

/* A lease, a result and another lease, of a size that every user may have. Never BUSY. */
static void be_modest(int channel, void *context)
{
    struct wire *w = wire_greet(&h);
    (void)channel;
    (void)context;
    for (uint64_t i = 0; i < 3; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 1000, 50 + i, own);
        const uint64_t lease = reply->lease, block = reply->block;
        wire_check_alive(w);
        wire_release(w, lease, block);
    }
    wire_close(w);
}

static void expect_room_for(uid_t uid)
{
    const struct child child = child_start_as(uid, be_modest, NULL);
    child_join(&child);
}

/* A copy may be larger than the limit of its user, because libshuf asks for parts. */
static void copy_in_parts(int channel, void *context)
{
    enum { N = 6 << 20 };
    shuf *handle;
    uint32_t *values = malloc(N * sizeof *values);
    const shuf_request p = {.permutation = {.n = N, .seed = 7}};
    (void)channel;
    (void)context;
    assert_non_null(values);
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    const shuf_status status = shuf_copy(handle, &p, values, N * sizeof *values, NULL);
    if (status != SHUF_OK)
        fail_msg("%s", shuf_message(handle));
    shuf_close(handle);
    free(values);
}

static void expect_copy(void)
{
    const struct child child = child_start_as(OTHER_UID, copy_in_parts, NULL);
    child_join(&child);
}

static void expect_room_for_others(void)
{
    expect_room_for(OTHER_UID);
    expect_room_for(0);
}

/* The row of a user in the status. All fields are 0 if the user has no row. */
static Shuf__User row_of(uid_t uid)
{
    Shuf__User row = SHUF__USER__INIT;
    struct wire *w = wire_greet(&h);
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    wire_send(w, &request);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    for (size_t i = 0; i < reply->status_reply->n_users; i++)
        if (reply->status_reply->users[i]->uid == uid)
            row = *reply->status_reply->users[i];
    wire_close(w);
    return row;
}

#define AWAIT_ROW(uid, row, condition)                                 \
    do {                                                               \
        for (unsigned waited_ = 0;; wire_wait(&waited_, #condition)) { \
            const Shuf__User row = row_of(uid);                        \
            if (condition)                                             \
                break;                                                 \
        }                                                              \
    } while (0)

/* ---- One user takes all ---- */

/* A sixteenth is for root, and another for users who have little. So the user gets 0.75 of 14/16 of
 * 256 MiB. */
enum { MOST_OF_FIRST = 168, MOST_OF_SECOND = 42 };

static void expect_to_leave_room(const struct greed *greed)
{
    struct child child = start_greedy(GREEDY_UID, greed);
    WIRE_AWAIT(&h, s, s.queued == 0); /* prefetches are computed later */
    const Shuf__User row = row_of(GREEDY_UID);
    print_message("%" PRIu64 " MiB of blocks, %" PRIu64 " leases, %" PRIu64 " blocks\n",
                  row.bytes / MI, row.leases, row.blocks);
    assert_in_range(row.bytes, MOST_OF_FIRST / 2 * MI, MOST_OF_FIRST * MI);
    expect_room_for_others();
    give_back(&child);
    AWAIT_ROW(GREEDY_UID, r, r.leases == 0 && r.bytes == r.idle);
    child_kill(&child);
    AWAIT_ROW(GREEDY_UID, r, r.clients == 0 && r.bytes == r.idle);
    child = start_greedy(GREEDY_UID, greed); /* it can have its part again */
    expect_room_for_others();
    child_kill(&child);
}

static void big_results(void **state)
{
    (void)state;
    expect_to_leave_room(&(struct greed){take_big, 3, 40, "user_memory 75%"});
}

static void thousands_of_small_results(void **state)
{
    (void)state;
    /* In host memory a small result costs about its size, and on a GPU a block of 2 MiB. */
    const uint64_t least = own == SHUF__TRANSPORT__TRANSPORT_MEMFD ? 2000 : 80;
    expect_to_leave_room(&(struct greed){take_small, 3, least, "user_memory 75%"});
}

static void results_that_stay_mapped(void **state)
{
    (void)state;
    expect_to_leave_room(&(struct greed){take_mappings, 3, 20, "user_memory 75%"});
}

static void buffers(void **state)
{
    (void)state;
    expect_to_leave_room(&(struct greed){take_buffers, CONNECTIONS, 42, "user_memory 75%"});
}

/* If a prefetch finds no memory, the later request for its result fails. */
static void prefetches(void **state)
{
    (void)state;
    expect_to_leave_room(&(struct greed){take_prefetches, CONNECTIONS, 0, ""});
}

/* ---- Users together ---- */

/* The second user has three quarters of the rest, and the third is served. */
static void two_users_leave_room_for_a_third(void **state)
{
    (void)state;
    const struct greed greed = {take_big, 1, 1, "user_memory 75%"};
    const struct child first = start_greedy(GREEDY_UID, &greed),
                       second = start_greedy(SECOND_UID, &greed);
    assert_in_range(row_of(GREEDY_UID).bytes, (MOST_OF_FIRST - 4) * MI, MOST_OF_FIRST * MI);
    assert_in_range(row_of(SECOND_UID).bytes, (MOST_OF_SECOND - 4) * MI, MOST_OF_SECOND * MI);
    expect_room_for_others();
    expect_copy();
    child_kill(&first);
    child_kill(&second);
}

/* If its part of the rest is too small, a user still gets 4 MiB. */
static void many_users_leave_room_for_one_more(void **state)
{
    (void)state;
    enum { USERS = 12 };
    const struct greed greed = {take_big_and_small, 1, 1, "user_memory 75%"};
    struct child child[USERS];
    for (unsigned i = 0; i < USERS; i++)
        child[i] = start_greedy(GREEDY_UID + 10 + i, &greed);
    assert_in_range(row_of(GREEDY_UID + 10 + USERS - 1).bytes, 3 * MI, 4 * MI);
    expect_room_for_others();
    expect_copy();
    for (unsigned i = 0; i < USERS; i++)
        child_kill(&child[i]);
}

/* Users with connections alone do not hide the one who has the memory. */
static void status_has_the_users_with_most_memory(void **state)
{
    (void)state;
    enum { USERS = 40, LISTED = 32 };
    const struct greed greed = {take_big, 1, 1, "user_memory 75%"};
    const struct child child = start_greedy(GREEDY_UID, &greed);
    struct wire *w[USERS];
    for (unsigned i = 0; i < USERS; i++) {
        assert_int_equal(seteuid(GREEDY_UID + 10 + i), 0);
        w[i] = wire_greet(&h);
        assert_int_equal(seteuid(0), 0);
    }
    struct wire *root = wire_greet(&h);
    const Shuf__StatusReply *status = wire_ask_status(root);
    assert_int_equal(status->n_users, LISTED);
    assert_int_equal(status->users[0]->uid, GREEDY_UID);
    assert_int_equal(status->other_users, 2 + USERS - LISTED);
    wire_close(root);
    for (unsigned i = 0; i < USERS; i++)
        wire_close(w[i]);
    child_kill(&child);
}

static void use_half(int channel, void *context)
{
    struct wire *w = wire_greet(&h);
    (void)channel;
    (void)context;
    for (uint64_t i = 0; i < 30; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, BIG_N, i, own);
        const uint64_t lease = reply->lease, block = reply->block;
        wire_release(w, lease, block);
    }
    wire_close(w);
}

/* Idle results are evicted for other users, so the second user gets as much as if it were alone. */
static void idle_results_are_in_nobodys_way(void **state)
{
    (void)state;
    const struct greed greed = {take_big, 1, 42, "user_memory 75%"};
    const struct child idle = child_start_as(GREEDY_UID, use_half, NULL);
    child_join(&idle);
    AWAIT_ROW(GREEDY_UID, r, r.clients == 0 && r.idle >= 100 * MI);
    const struct child child = start_greedy(SECOND_UID, &greed);
    child_kill(&child);
}

static void lease_one_result_often(int channel, void *context)
{
    struct wire *w[8];
    (void)context;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++) {
        w[i] = wire_greet(&h);
        for (int j = 0; j < 5; j++)
            wire_lease(w[i], BIG_N, 7, own);
    }
    child_send(channel, 0);
    child_receive(channel);
}

/* Many leases of one result are charged once, to the user who asked for it. */
static void a_result_is_charged_once(void **state)
{
    (void)state;
    const struct child first = child_start_as(GREEDY_UID, lease_one_result_often, NULL),
                       second = child_start_as(SECOND_UID, lease_one_result_often, NULL);
    child_receive(first.channel);
    child_receive(second.channel);
    for (uid_t uid = GREEDY_UID; uid <= SECOND_UID; uid++) {
        const Shuf__User row = row_of(uid);
        assert_int_equal(row.bytes, 4 * MI);
        assert_int_equal(row.blocks, 1);
        assert_int_equal(row.leases, 40);
        assert_int_equal(row.clients, 8);
    }
    child_kill(&first);
    AWAIT_ROW(GREEDY_UID, r, r.clients == 0 && r.leases == 0);
    assert_int_equal(row_of(SECOND_UID).leases, 40);
    child_kill(&second);
    AWAIT_ROW(SECOND_UID, r, r.clients == 0 && r.leases == 0 && r.bytes == r.idle);
}

/* ---- Limits that a request can never meet, and their texts ---- */

static void ask_for_too_much(int channel, void *context)
{
    struct wire *w = wire_greet(&h);
    (void)channel;
    (void)context;
    struct shuf__result_message permute = wire_permutation(200 * MI / 4, own);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY, "user_memory 75%: the request needs 200 MiB of ");
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY,
                ", one user may hold 168 MiB: let uid 0, who runs shufd, raise user_memory in ");
    take_leases(w, 40 * MI / 4, 1, "may hold 168 MiB, and holds 160 MiB");
    wire_close(w);
}

/* Root may have all of the memory. */
static void one_request_beyond_the_limit_of_a_user(void **state)
{
    (void)state;
    const struct child child = child_start_as(GREEDY_UID, ask_for_too_much, NULL);
    child_join(&child);
    AWAIT_ROW(GREEDY_UID, r, r.clients == 0 && r.leases == 0 && r.bytes == r.idle);
    struct wire *w = wire_greet(&h);
    wire_lease(w, 200 * MI / 4, 1, own);
    wire_close(w);
}

static void lease_more_than_half(int channel, void *context)
{
    struct wire *w = wire_greet(&h);
    (void)context;
    wire_lease(w, 36 * MI / 4, 1, own);
    child_send(channel, 0);
    child_receive(channel);
    wire_close(w);
}

/* The warm block is larger than the limit of a user. */
static void a_ready_block_is_no_exception(void **state)
{
    (void)state;
    WIRE_AWAIT(&h, s, s.host_idle + s.device_idle >= 60 * MI);
    const struct child child = child_start_as(GREEDY_UID, lease_more_than_half, NULL);
    child_receive(child.channel);
    assert_in_range(row_of(GREEDY_UID).bytes, 36 * MI, 42 * MI);
    expect_room_for_others();
    child_send(child.channel, 0);
    child_join(&child);
}

/* ---- Leases and blocks ---- */

static uint64_t take_one_often(struct wire *w, uint64_t seed, const char *words)
{
    uint64_t taken = 0;
    (void)seed;
    while (try_lease(w, 1000, 1, false, words) == SHUF_OK)
        taken++;
    return taken;
}

static void leases_of_all_connections(void **state)
{
    static char log[1 << 18];
    (void)state;
    const struct greed greed = {take_one_often, 3, 10, "user_leases 10: "};
    const struct child child = start_greedy(GREEDY_UID, &greed);
    assert_int_equal(row_of(GREEDY_UID).leases, 10);
    expect_room_for_others();
    struct wire *w = wire_greet(&h);
    for (uint64_t i = 0; i < 20; i++)
        wire_lease(w, 1000, i, own);
    wire_close(w);
    give_back(&child);
    assert_int_equal(row_of(GREEDY_UID).leases, 0);
    child_kill(&child);
    shufd_await(h.log, log, sizeof log, ": BUSY: user_leases 10: ");
}

/* Each connection gives its leases back, but may still have the blocks mapped. */
static void map_by_many_connections(int channel, void *context)
{
    enum { LEASES = 3, OTHERS = 4 };
    struct wire *w[OTHERS + 1];
    uint64_t mapped = 0;
    (void)channel;
    (void)context;
    w[0] = wire_greet(&h);
    for (uint64_t seed = 0; seed < LEASES; seed++, mapped++)
        wire_lease(w[0], 1000, seed, own);
    for (size_t i = 1; i <= OTHERS; i++) {
        w[i] = wire_greet(&h);
        for (uint64_t seed = 0; seed < LEASES && mapped < 10; seed++, mapped++)
            wire_release(w[i], wire_lease(w[i], 1000, seed, own)->lease, 0);
    }
    struct shuf__result_message permute = wire_permutation(1000, own);
    wire_send_result(w[OTHERS], &permute);
    const Shuf__Reply *reply = wire_receive(w[OTHERS]);
    assert_int_equal(status_of(reply, "user_leases 10: user 61000 has 10 blocks "), SHUF_BUSY);
    assert_true(reply->unmap);
    if (own !=
        SHUF__TRANSPORT__TRANSPORT_MEMFD) { /* device memory is mapped until the process ends */
        wire_send_release_all(w[1]);
        wire_expect(w[1], SHUF_OK, "");
    }
    wire_close(w[1]); /* its mappings end */
    for (int i = 0; try_lease(w[OTHERS], 1000, 9, false, "user_leases 10: ") != SHUF_OK; i++) {
        assert_true(i < 2000);
        usleep(10000);
    }
    for (size_t i = 0; i <= OTHERS; i++)
        if (i != 1)
            wire_close(w[i]);
}

static void mappings_of_all_connections(void **state)
{
    (void)state;
    const struct child child = child_start_as(GREEDY_UID, map_by_many_connections, NULL);
    child_join(&child);
}

/* The daemon knows the process by its first connection, which has another user. */
static void map_as_another_user(int channel, void *context)
{
    struct wire *first = wire_greet(&h);
    assert_int_equal(seteuid(GREEDY_UID), 0);
    map_by_many_connections(channel, context);
    wire_close(first);
}

static void mappings_of_a_process_with_two_users(void **state)
{
    (void)state;
    const struct child child = child_start(map_as_another_user, NULL);
    child_join(&child);
}

/* Three quarters of 14/16 of the 144 blocks. */
static void blocks(void **state)
{
    (void)state;
    const struct greed greed = {take_small, 3, 60,
                                "blocks: beside the other users, user 61000 may have 94 "};
    const struct child child = start_greedy(GREEDY_UID, &greed);
    assert_in_range(row_of(GREEDY_UID).blocks, 94, 94);
    expect_room_for_others();
    give_back(&child);
    AWAIT_ROW(GREEDY_UID, r, r.leases == 0 && r.bytes == r.idle);
    child_kill(&child);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(big_results, start, stop),
        cmocka_unit_test_setup_teardown(thousands_of_small_results, start, stop),
        cmocka_unit_test_setup_teardown(results_that_stay_mapped, start, stop),
        cmocka_unit_test_setup_teardown(buffers, start, stop),
        cmocka_unit_test_setup_teardown(prefetches, start, stop),
        cmocka_unit_test_setup_teardown(two_users_leave_room_for_a_third, start, stop),
        cmocka_unit_test_setup_teardown(many_users_leave_room_for_one_more, start_large, stop),
        cmocka_unit_test_setup_teardown(status_has_the_users_with_most_memory, start, stop),
        cmocka_unit_test_setup_teardown(idle_results_are_in_nobodys_way, start, stop),
        cmocka_unit_test_setup_teardown(a_result_is_charged_once, start, stop),
        cmocka_unit_test_setup_teardown(one_request_beyond_the_limit_of_a_user, start, stop),
        cmocka_unit_test_setup_teardown(a_ready_block_is_no_exception, start_with_pool, stop),
        cmocka_unit_test_setup_teardown(leases_of_all_connections, start_with_few_leases, stop),
        cmocka_unit_test_setup_teardown(mappings_of_all_connections, start_with_few_leases, stop),
        cmocka_unit_test_setup_teardown(mappings_of_a_process_with_two_users, start_with_few_leases,
                                        stop),
        cmocka_unit_test_setup_teardown(blocks, start_with_few_blocks, stop),
    };
    closefrom(STDERR_FILENO + 1); /* a daemon counts its inherited descriptors */
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
