/* SPDX-License-Identifier: MIT
 *
 * The lists of leases and users, from a fake peer. It sends the lists in pages, in frames of every
 * length, and with faults.
 */
#include "result_message.h"
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/peer.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 280 }; /* leases that nearly fill the arena that a reply is unpacked into */

static struct {
    uint64_t total, page; /* the number of all leases, and of the leases in a reply */
    bool endless;         /* the last page points to itself as the next page */
    int users;
} part;

static void reply_leases(int fd, uint64_t id, uint64_t after)
{
    static Shuf__LeaseEntry entries[PAGE];
    static Shuf__LeaseEntry *list[PAGE];
    struct shuf__result_message request;
    Shuf__LeasesReply leases = SHUF__LEASES_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    shuf__result_message_init(&request, SHUF__RESULT__WHAT_PERMUTE);
    request.permutation.algorithm = peer_escape_text;
    request.permutation.n = 11;
    request.permutation.seed = UINT64_MAX;
    request.permutation.epoch = 12;
    leases.lease = list;
    for (uint64_t i = after; i < part.total && leases.n_lease < part.page; i++) {
        Shuf__LeaseEntry *entry = list[leases.n_lease] = &entries[leases.n_lease];
        *entry = (Shuf__LeaseEntry)SHUF__LEASE_ENTRY__INIT;
        entry->id = 1 + i;
        entry->pid = 4000 + i;
        entry->uid = 1000;
        entry->transport = SHUF__TRANSPORT__TRANSPORT_CUDA_FD;
        entry->prefetch = i % 2;
        entry->ready = i % 3 == 0;
        entry->age_ms = 7 * i;
        entry->block = 5;
        entry->block_bytes = UINT64_C(1) << 40;
        entry->request = &request.result;
        entry->rows = 13;
        entry->count = 14;
        leases.n_lease++;
    }
    leases.next = after + leases.n_lease;
    if (leases.next == part.total && !part.endless)
        leases.next = 0;
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_LEASES;
    reply.leases = &leases;
    peer_send_reply(fd, &reply, NULL, 0);
}

/* User u has (u * 7) mod 101 bytes, so no two of 101 users have the same number. */
static void reply_status(int fd, uint64_t id)
{
    static Shuf__User users[101];
    static Shuf__User *list[101];
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    for (int i = 0; i < part.users; i++) {
        list[i] = &users[i];
        users[i] = (Shuf__User)SHUF__USER__INIT;
        users[i].uid = (uint32_t)i;
        users[i].clients = 2;
        users[i].leases = 3;
        users[i].blocks = 4;
        users[i].bytes = (uint64_t)i * 7 % 101;
        users[i].mapped = 5;
        users[i].mapped_pid = 6;
    }
    status.n_users = (size_t)part.users;
    status.users = list;
    status.host_used = 1;
    status.host_limit = 2;
    status.blocks = 3;
    status.pending_free = 4;
    status.leases = 5;
    status.hits = 6;
    status.joined = 7;
    status.computed = 8;
    status.evicted = 9;
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    peer_send_reply(fd, &reply, NULL, 0);
}

static void serve_lists(int fd, int connection)
{
    const Shuf__Request *request;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    while ((request = peer_receive(fd)))
        if (request->body_case == SHUF__REQUEST__BODY_LEASES)
            reply_leases(fd, request->id, request->leases->after);
        else if (request->body_case == SHUF__REQUEST__BODY_STATUS)
            reply_status(fd, request->id);
        else
            peer_refuse(fd, request->id, SHUF_OK, 0);
}

static shuf *begin(void)
{
    shuf *handle;
    peer_start(serve_lists);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    return handle;
}

static void finish(shuf *handle)
{
    shuf_close(handle);
    assert_int_equal(peer_stop(), 1);
}

struct visits {
    uint64_t count, stop;
    bool right;
};

static bool check_entry(void *context, const shuf_lease_entry *e)
{
    struct visits *v = context;
    const shuf_permutation *p = &e->request.permutation;
    uint64_t i = v->count++;
    v->right = v->right && e->id == i + 1 && e->pid == 4000 + i && e->uid == 1000 &&
               e->transport == SHUF_CUDA_FD && e->prefetch == (i % 2 == 1) &&
               e->ready == (i % 3 == 0) && e->age_ms == 7 * i && e->block == 5 &&
               e->block_bytes == UINT64_C(1) << 40 && p->n == 11 && p->seed == UINT64_MAX &&
               p->epoch == 12 && e->rows == 13 && e->count == 14 &&
               strcmp(p->algorithm, PEER_HOSTILE_SHOWN) == 0;
    return v->count != v->stop;
}

/* Frames that fit into the read buffer, that just exceed it, and much longer ones. */
static void pages_are_joined(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1,   7,   96,  97,  98,  99,  100, 101,
                                     102, 103, 104, 105, 106, 107, 108, PAGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct visits v = {.right = true};
        part.total = 2000;
        part.page = sizes[i];
        shuf *handle = begin();
        assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_OK);
        assert_true(v.right && v.count == 2000);
        part.total = v.count = 0;
        assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_OK);
        assert_int_equal(v.count, 0);
        finish(handle);
    }
}

static void visitor_stops_the_listing(void **state)
{
    (void)state;
    struct visits v = {.right = true, .stop = 3};
    part.total = 10;
    part.page = 2;
    shuf *handle = begin();
    assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_CANCELLED);
    assert_non_null(strstr(shuf_message(handle), "at lease 3"));
    assert_int_equal(v.count, 3);
    finish(handle);
}

/* Each wrong page ends the call with an error. */
static void wrong_pages_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t total;
        const char *words;
    } rows[] = {
        {5, "reply next 5: expected another page than before"},
        {PAGE + 1, "reply next 281: expected another page than before"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct visits v = {.right = true};
        part.total = rows[i].total;
        part.page = PAGE;
        part.endless = true;
        shuf *handle = begin();
        assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_PROTOCOL);
        assert_non_null(strstr(shuf_message(handle), rows[i].words));
        finish(handle);
    }
    part.endless = false;
}

static void check_users(unsigned users)
{
    shuf_daemon daemon;
    part.users = (int)users;
    shuf *handle = begin();
    assert_int_equal(shuf_daemon_status(handle, &daemon), SHUF_OK);
    finish(handle);
    assert_int_equal(daemon.users, users < SHUF_USERS ? users : SHUF_USERS);
    for (unsigned i = 0; i < daemon.users; i++) {
        const shuf_user *u = &daemon.user[i];
        assert_int_equal(u->bytes, u->uid * 7 % 101);
        assert_true(u->clients == 2 && u->leases == 3 && u->blocks == 4 && u->mapped == 5 &&
                    u->mapped_pid == 6);
        if (i > 0)
            assert_true(u->bytes < daemon.user[i - 1].bytes);
        if (users == 101) /* the 101 users have all numbers from 0 to 100 bytes */
            assert_int_equal(u->bytes, 100 - i);
    }
    assert_true(daemon.host_used == 1 && daemon.host_limit == 2 && daemon.blocks == 3 &&
                daemon.pending_free == 4 && daemon.leases == 5 && daemon.hits == 6 &&
                daemon.joined == 7 && daemon.computed == 8 && daemon.evicted == 9);
}

/* The array gets the users with the most bytes, in descending order. */
static void users_are_sorted_by_bytes(void **state)
{
    (void)state;
    check_users(0);
    check_users(1);
    check_users(SHUF_USERS);
    check_users(SHUF_USERS + 1);
    check_users(101);
}

static void transports_have_names(void **state)
{
    (void)state;
    static const struct {
        shuf_transport transport;
        const char *name;
    } expected[] = {
        {SHUF_INLINE, "inline"},
        {SHUF_MEMFD, "memfd"},
        {SHUF_CUDA_FD, "cuda-fd"},
        {SHUF_CUDA_IPC, "cuda-ipc"},
    };
    unsigned known = 0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_string_equal(shuf_transport_name(expected[i].transport), expected[i].name);
        /* A bit for each transport, without a gap. */
        assert_int_equal(expected[i].transport, 1U << i);
        known |= expected[i].transport;
    }
    for (unsigned other = 0; other < 64; other++)
        if (other & (other - 1) || other & ~known || other == 0)
            assert_string_equal(shuf_transport_name((shuf_transport)other), "none");
    assert_string_equal(shuf_transport_name((shuf_transport)-1), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_joined),        cmocka_unit_test(visitor_stops_the_listing),
        cmocka_unit_test(wrong_pages_are_refused), cmocka_unit_test(users_are_sorted_by_bytes),
        cmocka_unit_test(transports_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
