/* SPDX-License-Identifier: MIT
 *
 * The order of users and their shares of time, on a simulated device.
 */
#include "engine/turns.h"

#include "support/cmocka_all.h"

#define MS UINT64_C(1000000)

enum { USERS = 4, SLICE = SHUF__TURN_HOST_MS };

static struct shuf__turns turns;
static struct shuf__engine_job job[USERS];

static int start(void **state)
{
    (void)state;
    shuf__turns_init(&turns);
    return 0;
}

static int stop(void **state)
{
    struct shuf__turn_user *user;
    (void)state;
    TAILQ_FOREACH (user, &turns.users, link) {
        user->active = NULL;
        shuf__job_queue_init(&user->waiting);
    }
    shuf__turns_forget_idle(&turns);
    assert_true(TAILQ_EMPTY(&turns.users));
    return 0;
}

/* Adds a user with a paused job. */
static struct shuf__turn_user *add_user(uint32_t uid)
{
    struct shuf__turn_user *user = shuf__turns_user(&turns, uid);
    assert_non_null(user);
    user->active = &job[uid];
    return user;
}

/* Gives the next user in turn this time on the device. Returns the user. */
static uint32_t run_next(uint64_t ns)
{
    struct shuf__turn_user *user = shuf__turns_next(&turns, true);
    assert_non_null(user);
    user->virtual_ns += ns;
    return user->uid;
}

static void users_take_turns(void **state)
{
    (void)state;
    for (uint32_t uid = 0; uid < USERS; uid++)
        add_user(uid);
    for (uint32_t turn = 0; turn < 5 * USERS; turn++)
        assert_int_equal(run_next(SLICE * MS), turn % USERS);
}

/* A user whose jobs run longer than a slice gets fewer turns. */
static void users_share_time_equally(void **state)
{
    uint64_t time[2] = {0};
    (void)state;
    add_user(0);
    add_user(1);
    for (int turn = 0; turn < 1000; turn++) {
        const uint32_t uid = shuf__turns_next(&turns, true)->uid;
        const uint64_t ns = uid == 0 ? 7 * SLICE * MS : SLICE * MS;
        assert_int_equal(run_next(ns), uid);
        time[uid] += ns;
    }
    assert_true(time[0] < time[1] + 8 * SLICE * MS && time[1] < time[0] + 8 * SLICE * MS);
}

/* A user whose job begins later is passed over until then, and keeps its job. */
static void waiting_user_is_passed_over(void **state)
{
    (void)state;
    add_user(0);
    struct shuf__turn_user *user = shuf__turns_user(&turns, 1);
    shuf__job_queue_push(&user->waiting, &job[1]);
    user->waits = true;
    for (int turn = 0; turn < 3; turn++)
        assert_int_equal(run_next(SLICE * MS), 0);
    shuf__turns_forget_idle(&turns);
    assert_ptr_equal(shuf__turns_user(&turns, 1), user);
    shuf__turns_end_waits(&turns);
    assert_int_equal(run_next(SLICE * MS), 1);
}

/* Idle time gives a user no credit. Otherwise a user that was idle for an hour could then keep the
 * device for an hour. */
static void new_user_is_next_but_not_ahead(void **state)
{
    (void)state;
    add_user(0);
    for (int turn = 0; turn < 1000; turn++)
        run_next(SLICE * MS);
    add_user(1);
    assert_int_equal(run_next(SLICE * MS), 1);
    assert_int_equal(run_next(SLICE * MS), 0);
    assert_int_equal(run_next(SLICE * MS), 1);
    assert_int_equal(run_next(SLICE * MS), 0);
}

/* Beside users whose jobs never end, a new user waits for the rest of one turn. The device must
 * change hands within 50 ms on a CPU and 5 ms on a GPU. */
static void new_user_waits_for_one_turn(void **state)
{
    static const uint64_t turn[] = {SHUF__TURN_HOST_MS, SHUF__TURN_DEVICE_MS}, most[] = {50, 5};
    (void)state;
    for (uint32_t uid = 0; uid < USERS - 1; uid++)
        add_user(uid);
    for (int i = 0; i < 2; i++) {
        for (uint64_t before = 0; before < 100; before++)
            run_next(turn[i] * MS + before); /* no two users have used the same time */
        uint64_t waited = turn[i];           /* the new user comes just after a turn has begun */
        struct shuf__turn_user *user = add_user(USERS - 1);
        while (run_next(turn[i] * MS) != USERS - 1)
            waited += turn[i];
        assert_int_equal(waited, turn[i]);
        assert_in_range(waited, 1, most[i]);
        user->active = NULL;
        shuf__turns_forget_idle(&turns);
    }
}

static void only_waiting_users_get_turns(void **state)
{
    (void)state;
    struct shuf__turn_user *first = add_user(0);
    struct shuf__turn_user *second = shuf__turns_user(&turns, 1);
    assert_ptr_equal(shuf__turns_user(&turns, 1), second);
    assert_false(shuf__turns_has_others(&turns, first, true));
    shuf__job_queue_push(&second->waiting, &job[1]);
    assert_true(shuf__turns_has_others(&turns, first, true));
    assert_false(shuf__turns_has_others(&turns, first, false));
    first->virtual_ns = 1;
    assert_ptr_equal(shuf__turns_next(&turns, true), second);
    /* without a free lane, only a paused job can run */
    assert_ptr_equal(shuf__turns_next(&turns, false), first);
    first->active = NULL;
    assert_null(shuf__turns_next(&turns, false));
    shuf__turns_forget_idle(&turns);
    assert_ptr_equal(TAILQ_FIRST(&turns.users), second);
    assert_null(TAILQ_NEXT(second, link));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(users_take_turns, start, stop),
        cmocka_unit_test_setup_teardown(users_share_time_equally, start, stop),
        cmocka_unit_test_setup_teardown(new_user_is_next_but_not_ahead, start, stop),
        cmocka_unit_test_setup_teardown(new_user_waits_for_one_turn, start, stop),
        cmocka_unit_test_setup_teardown(only_waiting_users_get_turns, start, stop),
        cmocka_unit_test_setup_teardown(waiting_user_is_passed_over, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
