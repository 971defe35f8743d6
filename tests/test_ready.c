/* SPDX-License-Identifier: MIT
 *
 * The order in which the loop serves sessions, and the shares of users.
 */
#include "net/ready.h"

#include "support/cmocka_all.h"

enum { SESSIONS = 6, COST = 10 };

static struct shuf__ready_queue queue;
static struct shuf__ready session[SESSIONS];

/* Sessions 0 to 3 belong to user 1, session 4 to user 2, and session 5 to user 3. */
static int start(void **state)
{
    static const uint32_t uid[SESSIONS] = {1, 1, 1, 1, 2, 3};
    (void)state;
    shuf__ready_init(&queue);
    for (int i = 0; i < SESSIONS; i++)
        assert_true(shuf__ready_join(&queue, &session[i], uid[i]));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        shuf__ready_leave(&queue, &session[i]);
    assert_true(shuf__ready_is_empty(&queue));
    assert_true(LIST_EMPTY(&queue.users));
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
        shuf__ready_add(&queue, &session[i]);
    for (int i = 0; i < 12; i++) {
        const long served = serve(COST);
        assert_int_equal(served, i % 4);
        shuf__ready_add(&queue, &session[served]);
    }
}

/* Four busy sessions of one user delay another user by one request. */
static void other_user_waits_for_one_request(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        shuf__ready_add(&queue, &session[i]);
    for (int round = 0; round < 10; round++) {
        shuf__ready_add(&queue, &session[serve(COST)]);
        shuf__ready_add(&queue, &session[4]);
        assert_int_equal(serve(COST), 4);
    }
}

/* If a user's requests cost ten times as much, the user is served a tenth as often. */
static void users_share_time_equally(void **state)
{
    unsigned count[SESSIONS] = {0};
    (void)state;
    shuf__ready_add(&queue, &session[4]);
    shuf__ready_add(&queue, &session[5]);
    for (int i = 0; i < 110; i++) {
        struct shuf__ready *next = shuf__ready_next(&queue);
        next->user->used_ns += next == &session[4] ? 10 * COST : COST;
        count[next - session]++;
        shuf__ready_add(&queue, next);
    }
    assert_in_range(count[4], 9, 11);
    assert_in_range(count[5], 99, 101);
}

/* A user who was idle for long gets no extra time for it. */
static void idle_user_gets_no_extra_time(void **state)
{
    unsigned of_user_3 = 0;
    (void)state;
    shuf__ready_add(&queue, &session[4]);
    for (int i = 0; i < 1000; i++)
        shuf__ready_add(&queue, &session[serve(COST)]);
    shuf__ready_add(&queue, &session[5]);
    for (int i = 0; i < 100; i++) {
        const long served = serve(COST);
        of_user_3 += served == 5;
        shuf__ready_add(&queue, &session[served]);
    }
    assert_in_range(of_user_3, 49, 51);
}

static void session_is_queued_once_and_removed(void **state)
{
    (void)state;
    shuf__ready_add(&queue, &session[0]);
    shuf__ready_add(&queue, &session[0]);
    shuf__ready_add(&queue, &session[1]);
    shuf__ready_remove(&queue, &session[0]);
    shuf__ready_remove(&queue, &session[0]);
    assert_int_equal(serve(COST), 1);
    assert_null(shuf__ready_next(&queue));
    shuf__ready_add(&queue, &session[2]); /* stop() removes it */
}

/* Other sessions of the user would delay a reply, sessions of other users would not. */
static void only_session_of_a_user(void **state)
{
    (void)state;
    assert_false(shuf__ready_is_only(&session[0]));
    shuf__ready_add(&queue, &session[0]);
    shuf__ready_add(&queue, &session[4]);
    assert_true(shuf__ready_is_only(&session[0]));
    shuf__ready_add(&queue, &session[1]);
    assert_false(shuf__ready_is_only(&session[0]));
    assert_false(shuf__ready_is_only(&session[1]));
    assert_true(shuf__ready_is_only(&session[4]));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
