/* SPDX-License-Identifier: MIT
 *
 * Events that many sessions may have at once: the end of their process, deadlines, and the end of a
 * result that they wait for. Each session acts on them in its turn, so other users need not wait.
 */
#include "net/session.c"

#include "support/cmocka_all.h"

static uv_loop_t loop;
static struct shuf__sessions all;
static struct shuf__session session;
static struct shuf__pending pending;
static unsigned replies;

static void reply_once(struct shuf__pending *of)
{
    assert_ptr_equal(of, &pending);
    replies++;
}

static int start(void **state)
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

static int stop(void **state)
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
        cmocka_unit_test_setup_teardown(end_of_a_process_waits_for_the_turn, start, stop),
        cmocka_unit_test_setup_teardown(deadline_waits_for_the_turn, start, stop),
        cmocka_unit_test_setup_teardown(deadline_spares_a_session_with_a_request, start, stop),
        cmocka_unit_test_setup_teardown(result_waits_for_the_turn, start, stop),
    };
    return cmocka_run_group_tests_name("sessions together", tests, NULL, NULL);
}
