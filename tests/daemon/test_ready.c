/* SPDX-License-Identifier: MIT
 *
 * The order in which the loop serves sessions, and the shares of users.
 */
#include "net/ready.h"

#include "support/cmocka_all.h"

#include <sys/socket.h>
#include <unistd.h>

enum { SESSIONS = 6, COST = 10, CROWD = 64 };

static uv_loop_t loop;
static struct shuf__ready_queue queue;
static struct shuf__ready session[SESSIONS];

static unsigned reports;
static uint32_t last_events;

static void report(struct shuf__ready *of, uint32_t events)
{
    reports++;
    last_events = events;
    shuf__ready_add(of);
}

/* Sessions 0 to 3 belong to user 1, session 4 to user 2, and session 5 to user 3. */
static int start(void **state)
{
    static const uint32_t uid[SESSIONS] = {1, 1, 1, 1, 2, 3};
    (void)state;
    reports = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    shuf__ready_init(&queue, &loop);
    for (int i = 0; i < SESSIONS; i++)
        assert_true(shuf__ready_join(&queue, &session[i], uid[i]));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        shuf__ready_leave(&session[i]);
    assert_true(shuf__ready_is_empty(&queue));
    assert_true(LIST_EMPTY(&queue.users));
    assert_int_equal(queue.count, 0);
    uv_run(&loop, UV_RUN_DEFAULT); /* closes the sets of the users */
    assert_int_equal(uv_loop_close(&loop), 0);
    return 0;
}

/* Serves the next session for this time, and returns its number. */
static long serve(uint64_t ns)
{
    struct shuf__ready *next = shuf__ready_next(&queue);
    assert_non_null(next);
    next->user->used_ns += ns;
    return next - session;
}

static void sessions_of_a_user_are_served_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        shuf__ready_add(&session[i]);
    for (int i = 0; i < 12; i++) {
        const long served = serve(COST);
        assert_int_equal(served, i % 4);
        shuf__ready_add(&session[served]);
    }
}

/* Four busy sessions of one user delay another user by one request. */
static void other_user_waits_for_one_request(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        shuf__ready_add(&session[i]);
    for (int round = 0; round < 10; round++) {
        shuf__ready_add(&session[serve(COST)]);
        shuf__ready_add(&session[4]);
        assert_int_equal(serve(COST), 4);
    }
}

/* If a user's requests cost ten times as much, the user is served a tenth as often. */
static void users_share_time_equally(void **state)
{
    unsigned count[SESSIONS] = {0};
    (void)state;
    shuf__ready_add(&session[4]);
    shuf__ready_add(&session[5]);
    for (int i = 0; i < 110; i++) {
        struct shuf__ready *next = shuf__ready_next(&queue);
        next->user->used_ns += next == &session[4] ? 10 * COST : COST;
        count[next - session]++;
        shuf__ready_add(next);
    }
    assert_in_range(count[4], 9, 11);
    assert_in_range(count[5], 99, 101);
}

/* A user who was idle for long gets no extra time for it. */
static void idle_user_gets_no_extra_time(void **state)
{
    unsigned of_user_3 = 0;
    (void)state;
    shuf__ready_add(&session[4]);
    for (int i = 0; i < 1000; i++)
        shuf__ready_add(&session[serve(COST)]);
    shuf__ready_add(&session[5]);
    for (int i = 0; i < 100; i++) {
        const long served = serve(COST);
        of_user_3 += served == 5;
        shuf__ready_add(&session[served]);
    }
    assert_in_range(of_user_3, 49, 51);
}

static void session_is_queued_once_and_removed(void **state)
{
    (void)state;
    shuf__ready_add(&session[0]);
    shuf__ready_add(&session[0]);
    shuf__ready_add(&session[1]);
    shuf__ready_remove(&session[0]);
    shuf__ready_remove(&session[0]);
    assert_int_equal(serve(COST), 1);
    assert_null(shuf__ready_next(&queue));
    shuf__ready_add(&session[2]); /* stop() removes it */
}

/* Other sessions of the user would delay a reply, sessions of other users would not. */
static void only_session_of_a_user(void **state)
{
    (void)state;
    assert_false(shuf__ready_is_only(&session[0]));
    shuf__ready_add(&session[0]);
    shuf__ready_add(&session[4]);
    assert_true(shuf__ready_is_only(&session[0]));
    shuf__ready_add(&session[1]);
    assert_false(shuf__ready_is_only(&session[0]));
    assert_false(shuf__ready_is_only(&session[1]));
    assert_true(shuf__ready_is_only(&session[4]));
}

/* A session of a socket. The test writes to the other end. */
struct connection {
    struct shuf__ready session;
    int fd, other;
};

static void connect_to(struct connection *c, uint32_t uid)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    c->fd = ends[0];
    c->other = ends[1];
    c->session.report = report;
    assert_true(shuf__ready_join(&queue, &c->session, uid));
    assert_true(shuf__ready_watch(&c->session, c->fd, 0, EPOLLIN | EPOLLRDHUP));
}

static void disconnect(struct connection *c)
{
    close(c->fd);
    close(c->other);
    shuf__ready_leave(&c->session);
}

static void send_to(const struct connection *c)
{
    assert_int_equal(write(c->other, "x", 1), 1);
}

/* Takes the next session, and reads its byte. */
static const struct connection *read_next(void)
{
    char byte;
    struct shuf__ready *next = shuf__ready_next(&queue);
    if (!next)
        return NULL;
    const struct connection *c =
        (struct connection *)((char *)next - offsetof(struct connection, session));
    assert_int_equal(read(c->fd, &byte, 1), 1);
    next->user->used_ns += COST;
    return c;
}

static void event_of_a_socket_makes_its_session_ready(void **state)
{
    struct connection c;
    (void)state;
    connect_to(&c, 7);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_null(shuf__ready_next(&queue));
    send_to(&c);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(reports, 0); /* before the user's turn */
    assert_ptr_equal(read_next(), &c);
    assert_int_equal(last_events, EPOLLIN);
    assert_null(read_next());
    assert_true(shuf__ready_is_empty(&queue));
    shutdown(c.other, SHUT_RDWR);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_ptr_equal(shuf__ready_next(&queue), &c.session);
    assert_true(last_events & EPOLLRDHUP);
    disconnect(&c);
}

/* A closed peer is an event too, until nothing is watched. */
static void socket_is_watched_for_the_wanted_events(void **state)
{
    struct connection c;
    (void)state;
    connect_to(&c, 7);
    send_to(&c);
    assert_true(shuf__ready_watch(&c.session, c.fd, EPOLLIN | EPOLLRDHUP, EPOLLRDHUP));
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_null(shuf__ready_next(&queue));
    assert_true(shuf__ready_watch(&c.session, c.fd, EPOLLRDHUP, EPOLLOUT));
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_ptr_equal(shuf__ready_next(&queue), &c.session);
    assert_int_equal(last_events, EPOLLOUT);
    assert_true(shuf__ready_watch(&c.session, c.fd, EPOLLOUT, 0));
    shutdown(c.other, SHUT_RDWR);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_null(shuf__ready_next(&queue));
    assert_false(shuf__ready_watch(&c.session, -1, 0, EPOLLIN));
    disconnect(&c);
}

/* The crowd of one user does not delay another user, and each of its sessions has its turn. */
static void crowd_of_a_user_has_one_event(void **state)
{
    struct connection crowd[CROWD], other;
    unsigned served = 0, at = CROWD;
    (void)state;
    for (int i = 0; i < CROWD; i++) {
        connect_to(&crowd[i], 7);
        send_to(&crowd[i]);
    }
    connect_to(&other, 8);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_non_null(read_next());
    assert_in_range(reports, 1, CROWD / 2);
    send_to(&other);
    uv_run(&loop, UV_RUN_NOWAIT);
    for (const struct connection *c; (c = read_next()) != NULL; served++)
        if (c == &other)
            at = served;
    assert_int_equal(served, CROWD); /* with the other one, without the first one */
    assert_in_range(at, 0, 1);
    assert_int_equal(reports, CROWD + 1);
    for (int i = 0; i < CROWD; i++)
        disconnect(&crowd[i]);
    disconnect(&other);
}

/* The loop stops to watch the set of a user that waits for long, and starts again. */
static void user_that_waits_for_long_is_served(void **state)
{
    struct connection c;
    (void)state;
    connect_to(&c, 7);
    for (int round = 0; round < 3; round++) {
        send_to(&c);
        for (int i = 0; i < 20; i++)
            uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(reports, round);
        assert_ptr_equal(read_next(), &c);
        assert_null(read_next());
    }
    disconnect(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sessions_of_a_user_are_served_in_order, start, stop),
        cmocka_unit_test_setup_teardown(other_user_waits_for_one_request, start, stop),
        cmocka_unit_test_setup_teardown(users_share_time_equally, start, stop),
        cmocka_unit_test_setup_teardown(idle_user_gets_no_extra_time, start, stop),
        cmocka_unit_test_setup_teardown(session_is_queued_once_and_removed, start, stop),
        cmocka_unit_test_setup_teardown(only_session_of_a_user, start, stop),
        cmocka_unit_test_setup_teardown(event_of_a_socket_makes_its_session_ready, start, stop),
        cmocka_unit_test_setup_teardown(socket_is_watched_for_the_wanted_events, start, stop),
        cmocka_unit_test_setup_teardown(crowd_of_a_user_has_one_event, start, stop),
        cmocka_unit_test_setup_teardown(user_that_waits_for_long_is_served, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
