/* SPDX-License-Identifier: MIT
 *
 * Requests and replies in the turns of sessions. The test has its own clock, and its own function
 * that handles a request or sends a reply.
 */
#include "net/session.h"

#include "support/cmocka_all.h"

#include <string.h>

enum { SESSIONS = 2, US = 1000 };

static struct shuf__sessions all;
static struct shuf__session session[SESSIONS];
static struct shuf__ready acceptor;
static uv_loop_t loop;
static uint64_t now;        /* the time of the clock, in ns */
static uint64_t request_ns; /* the time that a request takes */
static char served[16];     /* the digit of a session for its request, a letter for its reply */

uint64_t __wrap_uv_hrtime(void);
uint64_t __wrap_uv_hrtime(void)
{
    return now;
}

/* A session that reads handles its request, and is then ready to send. A session that sends has
 * nothing left to do. */
void __wrap_shuf__session_serve(struct shuf__session *of);
void __wrap_shuf__session_serve(struct shuf__session *of)
{
    const char number = (char)(of - session);
    const char name[2] = {(char)(number + (of->state == SHUF__SESSION_SENDING ? 'a' : '0')), 0};
    strcat(served, name);
    now += of->state == SHUF__SESSION_SENDING ? US : request_ns;
    if (of->state == SHUF__SESSION_READING) {
        of->state = SHUF__SESSION_SENDING;
        shuf__ready_add(&of->ready);
    }
}

static int start_as(const uint32_t uid[SESSIONS])
{
    assert_int_equal(uv_loop_init(&loop), 0);
    shuf__sessions_init(&all, &loop);
    memset(session, 0, sizeof session);
    memset(&acceptor, 0, sizeof acceptor);
    served[0] = 0;
    assert_true(shuf__ready_join(&all.ready, &acceptor, SHUF__READY_NOBODY));
    for (int i = 0; i < SESSIONS; i++) {
        session[i].refs = 1;
        session[i].state = SHUF__SESSION_READING;
        session[i].ready.serve = shuf__session_take_turn;
        assert_true(shuf__ready_join(&all.ready, &session[i].ready, uid[i]));
        shuf__ready_add(&session[i].ready);
    }
    return 0;
}

static int start_one_user(void **state)
{
    (void)state;
    return start_as((const uint32_t[SESSIONS]){1, 1});
}

static int start_two_users(void **state)
{
    (void)state;
    return start_as((const uint32_t[SESSIONS]){1, 2});
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        shuf__ready_leave(&session[i].ready);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reply_to_short_request_is_in_its_turn, start_two_users,
                                        stop),
        cmocka_unit_test_setup_teardown(reply_to_long_request_has_a_turn_of_its_own,
                                        start_two_users, stop),
        cmocka_unit_test_setup_teardown(replies_to_a_user_are_sent_together, start_one_user, stop),
        cmocka_unit_test_setup_teardown(loop_handles_other_events_between_turns, start_two_users,
                                        stop),
    };
    return cmocka_run_group_tests_name("turns of sessions", tests, NULL, NULL);
}
