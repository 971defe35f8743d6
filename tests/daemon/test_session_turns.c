/* SPDX-License-Identifier: MIT
 *
 * The parts of net/ without a daemon: the order in which the loop serves sessions and the shares of
 * users, the bytes that a session receives in a turn, and requests, replies and events in the turns
 * of sessions.
 */
#include "net/inbox.h"
#include "net/ready.h"
#include "net/session.c"
#include "support/cmocka_all.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The order of sessions ---- */

enum { SESSIONS = 6, COST = 10, CROWD = 64 };

static uv_loop_t loop;
static struct shuf__ready_queue queue;
static struct shuf__ready queued[SESSIONS];

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
        assert_true(shuf__ready_join(&queue, &queued[i], uid[i]));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        shuf__ready_leave(&queued[i]);
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
    return next - queued;
}

static void sessions_of_a_user_are_served_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        shuf__ready_add(&queued[i]);
    for (int i = 0; i < 12; i++) {
        const long served = serve(COST);
        assert_int_equal(served, i % 4);
        shuf__ready_add(&queued[served]);
    }
}

/* Four busy sessions of one user delay another user by one request. */
static void other_user_waits_for_one_request(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        shuf__ready_add(&queued[i]);
    for (int round = 0; round < 10; round++) {
        shuf__ready_add(&queued[serve(COST)]);
        shuf__ready_add(&queued[4]);
        assert_int_equal(serve(COST), 4);
    }
}

/* If a user's requests cost ten times as much, the user is served a tenth as often. */
static void users_share_time_equally(void **state)
{
    unsigned count[SESSIONS] = {0};
    (void)state;
    shuf__ready_add(&queued[4]);
    shuf__ready_add(&queued[5]);
    for (int i = 0; i < 110; i++) {
        struct shuf__ready *next = shuf__ready_next(&queue);
        next->user->used_ns += next == &queued[4] ? 10 * COST : COST;
        count[next - queued]++;
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
    shuf__ready_add(&queued[4]);
    for (int i = 0; i < 1000; i++)
        shuf__ready_add(&queued[serve(COST)]);
    shuf__ready_add(&queued[5]);
    for (int i = 0; i < 100; i++) {
        const long served = serve(COST);
        of_user_3 += served == 5;
        shuf__ready_add(&queued[served]);
    }
    assert_in_range(of_user_3, 49, 51);
}

static void session_is_queued_once_and_removed(void **state)
{
    (void)state;
    shuf__ready_add(&queued[0]);
    shuf__ready_add(&queued[0]);
    shuf__ready_add(&queued[1]);
    shuf__ready_remove(&queued[0]);
    shuf__ready_remove(&queued[0]);
    assert_int_equal(serve(COST), 1);
    assert_null(shuf__ready_next(&queue));
    shuf__ready_add(&queued[2]); /* stop() removes it */
}

/* Other sessions of the user would delay a reply, sessions of other users would not. */
static void only_session_of_a_user(void **state)
{
    (void)state;
    assert_false(shuf__ready_is_only(&queued[0]));
    shuf__ready_add(&queued[0]);
    shuf__ready_add(&queued[4]);
    assert_true(shuf__ready_is_only(&queued[0]));
    shuf__ready_add(&queued[1]);
    assert_false(shuf__ready_is_only(&queued[0]));
    assert_false(shuf__ready_is_only(&queued[1]));
    assert_true(shuf__ready_is_only(&queued[4]));
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

/* ---- A session receives a bounded number of bytes in a turn ---- */

enum { FRAME = SHUF__FRAME_HEADER + SHUF__FRAME_MAX, TURNS = (FRAME - 1) / SHUF__INBOX_CHUNK + 1 };

static struct shuf__inbox inbox;
static uint8_t frame[FRAME];
static int ends[2];

/* Sends a frame of the largest size. */
static int start_inbox(void **state)
{
    (void)state;
    inbox.begin = inbox.end = 0;
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)(i * 7);
    shuf__frame_header(frame, SHUF__FRAME_MAX);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(send(ends[0], frame, sizeof frame, 0), sizeof frame);
    return 0;
}

static int stop_inbox(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void large_frame_needs_several_turns(void **state)
{
    const uint8_t *message;
    size_t length;
    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        assert_false(shuf__inbox_has_frame(&inbox));
        assert_in_range(shuf__inbox_receive(&inbox, ends[1]), 1, SHUF__INBOX_CHUNK);
    }
    assert_int_equal(shuf__inbox_next(&inbox, &message, &length), SHUF__FRAME_WHOLE);
    assert_int_equal(length, SHUF__FRAME_MAX);
    assert_memory_equal(message, frame + SHUF__FRAME_HEADER, SHUF__FRAME_MAX);
    assert_int_equal(shuf__inbox_compact(&inbox), 0);
}

static void discard_needs_several_turns(void **state)
{
    (void)state;
    for (int turn = 0; turn < TURNS; turn++)
        assert_in_range(shuf__inbox_discard(&inbox, ends[1]), 1, SHUF__INBOX_CHUNK);
    assert_int_equal(shuf__inbox_discard(&inbox, ends[1]), -1);
    assert_int_equal(shuf__inbox_compact(&inbox), 0);
}

/* ---- Turns. The clock and the function that handles a request are of this test ---- */

enum { PAIR = 2, US = 1000 };

static struct shuf__sessions all;
static struct shuf__session pair[PAIR];
static struct shuf__ready acceptor;
static uint64_t now;        /* the time of the clock, in ns */
static uint64_t request_ns; /* the time that a request takes */
static char served[16];     /* the digit of a pair for its request, a letter for its reply */

uint64_t __wrap_uv_hrtime(void);
uint64_t __wrap_uv_hrtime(void)
{
    return now;
}

/* A pair that reads handles its request, and is then ready to send. A pair that
 * sends has nothing left to do. */
void __wrap_shuf__session_serve(struct shuf__session *of);
void __wrap_shuf__session_serve(struct shuf__session *of)
{
    const char number = (char)(of - pair);
    const char name[2] = {(char)(number + (of->state == SHUF__SESSION_SENDING ? 'a' : '0')), 0};
    strcat(served, name);
    now += of->state == SHUF__SESSION_SENDING ? US : request_ns;
    if (of->state == SHUF__SESSION_READING) {
        of->state = SHUF__SESSION_SENDING;
        shuf__ready_add(&of->ready);
    }
}

static int start_as(const uint32_t uid[PAIR])
{
    assert_int_equal(uv_loop_init(&loop), 0);
    shuf__sessions_init(&all, &loop);
    memset(pair, 0, sizeof pair);
    memset(&acceptor, 0, sizeof acceptor);
    served[0] = 0;
    assert_true(shuf__ready_join(&all.ready, &acceptor, SHUF__READY_NOBODY));
    for (int i = 0; i < PAIR; i++) {
        pair[i].refs = 1;
        pair[i].state = SHUF__SESSION_READING;
        pair[i].ready.serve = shuf__session_take_turn;
        assert_true(shuf__ready_join(&all.ready, &pair[i].ready, uid[i]));
        shuf__ready_add(&pair[i].ready);
    }
    return 0;
}

static int start_one_user(void **state)
{
    (void)state;
    return start_as((const uint32_t[PAIR]){1, 1});
}

static int start_two_users(void **state)
{
    (void)state;
    return start_as((const uint32_t[PAIR]){1, 2});
}

static int stop_pair(void **state)
{
    (void)state;
    for (int i = 0; i < PAIR; i++)
        shuf__ready_leave(&pair[i].ready);
    shuf__ready_leave(&acceptor);
    shuf__sessions_close(&all);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return 0;
}

/* Serves sessions until none is ready. */
static void serve_all(void)
{
    while (!shuf__ready_is_empty(&all.ready))
        shuf__sessions_serve(&all);
}

/* A second turn for the reply would make a user wait for another user's turn. A request of 1000
 * values takes 13 us with cold caches. */
static void reply_to_short_request_is_in_its_turn(void **state)
{
    (void)state;
    request_ns = 20 * US;
    serve_all();
    assert_string_equal(served, "0a1b");
}

static void reply_to_long_request_has_a_turn_of_its_own(void **state)
{
    (void)state;
    request_ns = 100 * US;
    serve_all();
    assert_string_equal(served, "01ab");
}

/* A client that waits for both replies wakes up once. */
static void replies_to_a_user_are_sent_together(void **state)
{
    (void)state;
    request_ns = 20 * US;
    serve_all();
    assert_string_equal(served, "01ab");
}

/* So that new connections and other events do not wait for the requests of all sessions. */
static void loop_handles_other_events_between_turns(void **state)
{
    (void)state;
    request_ns = 20 * US;
    shuf__sessions_serve(&all);
    assert_false(shuf__ready_is_empty(&all.ready));
    serve_all();
}

/* ---- Events that many sessions may have at once: each acts on them in its turn ---- */

static struct shuf__session session;
static struct shuf__pending pending;
static unsigned replies;

static void reply_once(struct shuf__pending *of)
{
    assert_ptr_equal(of, &pending);
    replies++;
}

static int start_one(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    shuf__sessions_init(&all, &loop);
    memset(&session, 0, sizeof session);
    session.all = &all;
    session.fd = -1;
    session.deadline.data = &session;
    return shuf__ready_join(&all.ready, &session.ready, 1) ? 0 : -1;
}

static int stop_one(void **state)
{
    (void)state;
    shuf__ready_leave(&session.ready);
    shuf__sessions_close(&all);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void end_of_a_process_waits_for_the_turn(void **state)
{
    (void)state;
    on_client_death(&session.client);
    assert_int_equal(session.state, SHUF__SESSION_READING);
    assert_true(session.is_lost && session.ready.is_ready);
}

static void deadline_waits_for_the_turn(void **state)
{
    static const enum shuf__session_state states[] = {
        SHUF__SESSION_READING, SHUF__SESSION_HALF_CLOSED, SHUF__SESSION_UNREAD};
    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        session.state = states[i];
        session.is_late = session.is_lost = false;
        on_deadline(&session.deadline);
        assert_int_equal(session.state, states[i]);
        assert_int_equal(session.is_late, states[i] == SHUF__SESSION_READING);
        assert_int_equal(session.is_lost, states[i] != SHUF__SESSION_READING);
        assert_true(session.ready.is_ready);
        shuf__ready_remove(&session.ready);
    }
}

static void deadline_spares_a_session_with_a_request(void **state)
{
    (void)state;
    session.state = SHUF__SESSION_WORKING;
    on_deadline(&session.deadline);
    assert_false(session.is_late || session.is_lost || session.ready.is_ready);
}

static void result_waits_for_the_turn(void **state)
{
    (void)state;
    replies = 0;
    pending = (struct shuf__pending){.reply = reply_once};
    shuf__session_wait(&session, &pending);
    shuf__session_serve(&session); /* for another reason */
    assert_int_equal(replies, 0);
    shuf__session_reply_in_turn(&session);
    assert_int_equal(replies, 0);
    assert_true(session.ready.is_ready);
    shuf__session_serve(&session);
    assert_int_equal(replies, 1);
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
        cmocka_unit_test_setup_teardown(large_frame_needs_several_turns, start_inbox, stop_inbox),
        cmocka_unit_test_setup_teardown(discard_needs_several_turns, start_inbox, stop_inbox),
        cmocka_unit_test_setup_teardown(reply_to_short_request_is_in_its_turn, start_two_users,
                                        stop_pair),
        cmocka_unit_test_setup_teardown(reply_to_long_request_has_a_turn_of_its_own,
                                        start_two_users, stop_pair),
        cmocka_unit_test_setup_teardown(replies_to_a_user_are_sent_together, start_one_user,
                                        stop_pair),
        cmocka_unit_test_setup_teardown(loop_handles_other_events_between_turns, start_two_users,
                                        stop_pair),
        cmocka_unit_test_setup_teardown(end_of_a_process_waits_for_the_turn, start_one, stop_one),
        cmocka_unit_test_setup_teardown(deadline_waits_for_the_turn, start_one, stop_one),
        cmocka_unit_test_setup_teardown(deadline_spares_a_session_with_a_request, start_one,
                                        stop_one),
        cmocka_unit_test_setup_teardown(result_waits_for_the_turn, start_one, stop_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
