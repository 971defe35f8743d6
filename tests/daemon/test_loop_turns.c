/* SPDX-License-Identifier: MIT
 *
 * Users share the thread of the daemon's loop. One user sends requests without end over many
 * connections, and the other users still get their share of time.
 */
#include "support/bystander.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HOSTILE_UID = 61000,
    CONNECTIONS = 96,
    LEASES = 500, /* leases of each connection below LEASING; they make the lists long */
    LEASING = 8,
    RELEASES = 200, /* leases in one Release request; the last one does not exist */
    BATCH = 16,     /* requests in one write to the socket */
};

static struct harness h;

static int start_with(const char *config)
{
    if (geteuid() != 0) /* only root can become several users */
        exit(HARNESS_SKIP);
    wire_start(&h, harness_backend, config);
    return chmod(h.directory, 0755);
}

static int start_for_floods(void **state)
{
    (void)state;
    return start_with("socket_mode = 0666\nclients = 128\nuser_clients = 100\n");
}

static int start_small(void **state)
{
    (void)state;
    return start_with("socket_mode = 0666\nclients = 64\n");
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

/* ---- The hostile user ---- */

/* The bytes that a connection sends again and again. */
struct request_batch {
    uint8_t bytes[BATCH * 4096];
    size_t size;
};

static void add_status(struct wire *w, struct request_batch *flood)
{
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    flood->size += wire_pack(w, &request, flood->bytes + flood->size, 4096);
}

static void add_leases(struct wire *w, struct request_batch *flood)
{
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    leases.after = LEASES * LEASING - 20;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    flood->size += wire_pack(w, &request, flood->bytes + flood->size, 4096);
}

static void add_release(struct wire *w, struct request_batch *flood)
{
    uint64_t ids[RELEASES];
    Shuf__Release release = SHUF__RELEASE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    for (uint64_t i = 0; i < RELEASES; i++)
        ids[i] = i + 1;
    ids[RELEASES - 1] = UINT64_MAX;
    release.lease = ids;
    release.n_lease = RELEASES;
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = &release;
    flood->size += wire_pack(w, &request, flood->bytes + flood->size, 4096);
}

static void add_permute(struct wire *w, struct request_batch *flood)
{
    struct shuf__result_message permute = wire_permutation(5000, SHUF__TRANSPORT__TRANSPORT_INLINE);
    Shuf__Request request = SHUF__REQUEST__INIT;
    permute.permutation.seed = w->id;
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(&permute);
    flood->size += wire_pack(w, &request, flood->bytes + flood->size, 4096);
}

typedef void add_request(struct wire *w, struct request_batch *flood);

/* Sends as much as the socket takes and discards the replies. */
static void send_and_discard(struct wire *w, const struct request_batch *flood, size_t *at)
{
    uint8_t replies[65536];
    ssize_t sent = send(w->fd, flood->bytes + *at, flood->size - *at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0)
        *at = (*at + (size_t)sent) % flood->size;
    while (recv(w->fd, replies, sizeof replies, MSG_DONTWAIT) > 0)
        ;
}

struct flood {
    const char *name;
    add_request *add;
};

static void send_requests(int channel, void *context)
{
    const struct flood *of = context;
    static struct request_batch flood[CONNECTIONS];
    struct wire *w[CONNECTIONS];
    struct pollfd events[CONNECTIONS];
    size_t at[CONNECTIONS] = {0};
    for (int i = 0; i < CONNECTIONS; i++) {
        w[i] = wire_greet(&h);
        for (int j = 0; i < LEASING && j < LEASES; j++)
            wire_lease(w[i], 100, (uint64_t)j, wire_backend_transport(harness_backend));
        for (int j = 0; j < BATCH; j++)
            of->add(w[i], &flood[i]);
        events[i] = (struct pollfd){.fd = w[i]->fd, .events = POLLIN | POLLOUT};
    }
    child_send(channel, 0);
    for (;;) {
        poll(events, CONNECTIONS, -1);
        for (int i = 0; i < CONNECTIONS; i++)
            if (events[i].revents)
                send_and_discard(w[i], &flood[i], &at[i]);
    }
}

/* ---- The bystander ---- */

static void expect_served_beside(struct flood flood, struct wire *bystander,
                                 const struct latency *idle)
{
    const struct child child = child_start_as(HOSTILE_UID, send_requests, &flood);
    child_receive(child.channel);
    bystander_expect_near(flood.name, bystander, idle);
    child_kill(&child);
    WIRE_AWAIT(&h, s, s.clients == 2); /* the bystander, and this one */
}

static void floods_do_not_delay_other_users(void **state)
{
    (void)state;
    struct wire *bystander = wire_greet(&h);
    const struct latency idle = bystander_measure("idle", bystander);
    expect_served_beside((struct flood){"status", add_status}, bystander, &idle);
    expect_served_beside((struct flood){"leases", add_leases}, bystander, &idle);
    expect_served_beside((struct flood){"release", add_release}, bystander, &idle);
    expect_served_beside((struct flood){"permute", add_permute}, bystander, &idle);
    wire_close(bystander);
}

/* ---- Connections of a user ---- */

/* Sends the greeting and returns the reply. The daemon may have refused the connection before the
 * greeting. */
static const Shuf__Reply *greet(struct wire *w)
{
    struct pollfd poll_event = {.fd = w->fd, .events = POLLIN};
    Shuf__Hello hello = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    hello.version = SHUF__PROTOCOL_VERSION;
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    const size_t size = wire_pack(w, &request, w->frame, sizeof w->frame);
    if (send(w->fd, w->frame, size, MSG_NOSIGNAL) < 0)
        assert_int_equal(poll(&poll_event, 1, 0), 1);
    return wire_receive(w);
}

/* Opens connections until one is refused with this text. Returns their number. */
static unsigned open_all(uid_t uid, struct wire **w, const char *text)
{
    for (unsigned count = 0;; count++) {
        w[count] = wire_open_as(&h, uid);
        const Shuf__Reply *reply = greet(w[count]);
        if (reply->status == SHUF_OK)
            continue;
        assert_int_equal(reply->status, SHUF_BUSY);
        assert_non_null(strstr(reply->message, text));
        wire_close(w[count]);
        return count;
    }
}

/* A 256th of the connections is for every user, but here would exceed the number. */
static int start_with_few(void **state)
{
    (void)state;
    return start_with("socket_mode = 0666\nclients = 1024\nuser_clients = 2\n");
}

static void number_of_user_clients_is_exact(void **state)
{
    struct wire *w[8];
    (void)state;
    const unsigned count =
        open_all(HOSTILE_UID, w, "user_clients 2: beside the other users, user 61000 may have 2 ");
    assert_int_equal(count, 2);
    for (unsigned i = 0; i < count; i++)
        wire_close(w[i]);
}

static void hold_connection(int channel, void *context)
{
    struct wire *w = wire_open(&h);
    (void)context;
    child_send(channel, greet(w)->status);
    child_receive(channel);
}

/* The watches of the processes and the set of the user take descriptors too. */
static void number_of_user_clients_is_exact_for_processes(void **state)
{
    enum { PROCESSES = 3 };
    static const shuf_status expected[PROCESSES] = {SHUF_OK, SHUF_OK, SHUF_BUSY};
    struct child child[PROCESSES];
    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = child_start_as(HOSTILE_UID, hold_connection, NULL);
        assert_int_equal(child_receive(child[i].channel), expected[i]);
    }
    for (int i = 0; i < PROCESSES; i++)
        child_kill(&child[i]);
}

static int start_without_limit(void **state)
{
    (void)state;
    return start_with("socket_mode = 0666\nclients = 64\nuser_clients = 0\n");
}

/* The log names the limit that refuses connections. */
static void user_clients_of_0_is_no_limit(void **state)
{
    enum { CLIENTS = 64, RESERVE = 4 };
    static char log[1 << 16];
    struct wire *w[CLIENTS + 1];
    (void)state;
    const unsigned count = open_all(HOSTILE_UID, w, "clients 64: the most that may be connected");
    assert_int_equal(count, CLIENTS - RESERVE);
    shufd_await(h.log, log, sizeof log, "warning: client refused: clients 64: the most that may ");
    for (unsigned i = 0; i < count; i++)
        wire_close(w[i]);
}

/* Each connection is the only one of its process and of its user. */
static void users_can_have_all_connections(void **state)
{
    enum { CLIENTS = 64, RESERVE = 4 };
    struct child child[CLIENTS];
    (void)state;
    for (uid_t i = 0; i < CLIENTS; i++) {
        child[i] = child_start_as(HOSTILE_UID + i, hold_connection, NULL);
        assert_int_equal(child_receive(child[i].channel),
                         i < CLIENTS - RESERVE ? SHUF_OK : SHUF_BUSY);
    }
    for (int i = 0; i < CLIENTS; i++)
        child_kill(&child[i]);
}

static void connections_of_a_user_are_limited(void **state)
{
    enum { CLIENTS = 64, RESERVE = 4, USERS = 3 };
    static const unsigned expected[USERS] = {42, 10, 3}; /* 75% of 56, of 14, of 4 */
    struct wire *w[CLIENTS + 1];
    unsigned count = 0;
    (void)state;
    for (uid_t user = 0; user < USERS; user++) {
        const unsigned before = count;
        count += open_all(HOSTILE_UID + user, w + count, "user_clients 75%: beside the other ");
        assert_int_equal(count - before, expected[user]);
    }
    for (uid_t user = USERS; count < CLIENTS - RESERVE; user++) /* who have one at least */
        count += open_all(HOSTILE_UID + user, w + count, "clients ");
    count += open_all(HOSTILE_UID, w + count, "clients 64: the most that may be connected");
    assert_int_equal(count, CLIENTS - RESERVE);
    count += open_all(0, w + count, "clients 64: the most that may be connected");
    assert_int_equal(count, CLIENTS);
    wire_close(w[0]); /* now there is room for another */
    for (unsigned waited = 0; greet(w[0] = wire_open_as(&h, 0))->status != SHUF_OK;
         wire_wait(&waited, "room for another connection"))
        wire_close(w[0]);
    for (unsigned i = 0; i < count; i++)
        wire_close(w[i]);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(floods_do_not_delay_other_users, start_for_floods, stop),
        cmocka_unit_test_setup_teardown(connections_of_a_user_are_limited, start_small, stop),
        cmocka_unit_test_setup_teardown(users_can_have_all_connections, start_small, stop),
        cmocka_unit_test_setup_teardown(number_of_user_clients_is_exact, start_with_few, stop),
        cmocka_unit_test_setup_teardown(number_of_user_clients_is_exact_for_processes,
                                        start_with_few, stop),
        cmocka_unit_test_setup_teardown(user_clients_of_0_is_no_limit, start_without_limit, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
