/* SPDX-License-Identifier: MIT
 *
 * Users take turns of a simulated GPU, which completes each call that it has.
 */
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <sys/stat.h>
#include <unistd.h>

enum { USER = 61000 }; /* the first of the users */

static struct wire *begin_endless_job(const struct harness *h, uid_t user, uint64_t seed)
{
    struct shuf__result_message endless =
        wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_greet_as(h, user);
    endless.permutation.seed = seed;
    wire_send_result(w, &endless);
    return w;
}

static void start_gpu(struct harness *h, unsigned call_us)
{
    static const char *const for_all[] = {"socket_mode", "0666", "host_results", "device", NULL};
    if (geteuid() != 0) /* only root can become several users */
        skip();
    faults->is_gpu = true;
    faults->call_us = call_us;
    fake_backend_start(h, for_all);
    assert_int_equal(chmod(h->directory, 0755), 0);
}

/* Users take turns of a GPU, whose calls are longer than a turn. A call waits for no call of
 * another user's paused job. So a request waits for one call and not for one of each user. On a
 * busy machine, more calls end while the client waits. */
static void test_calls_of_users_do_not_queue_up(void **state)
{
    (void)state;
    enum { USERS = 5, REQUESTS = 20 };
    unsigned slow = 0;
    struct harness h;
    struct wire *user[USERS];
    struct shuf__result_message other =
        wire_permutation(SMALL + 1, SHUF__TRANSPORT__TRANSPORT_NONE);
    start_gpu(&h, 8000);
    for (unsigned i = 0; i < USERS; i++)
        user[i] = begin_endless_job(&h, USER + i, i);
    wire_await_queued(&h, USERS);
    struct wire *w = wire_greet(&h);
    for (other.permutation.seed = 0; other.permutation.seed < REQUESTS; other.permutation.seed++) {
        const unsigned before = seen->calls_done;
        wire_send_result(w, &other);
        wire_expect(w, SHUF_OK, "");
        slow += seen->calls_done - before >= USERS; /* its own call is among them */
    }
    assert_true(slow <= REQUESTS / 2);
    if (seen->late_calls > seen->calls / 4)
        fail_msg("%u of %u calls waited for another", seen->late_calls, seen->calls);
    wire_close(w);
    for (unsigned i = 0; i < USERS; i++) {
        assert_true(seen->calls_of[i] > 0);
        wire_close(user[i]);
    }
    assert_true(harness_stop(&h));
}

static void expect_small_results(const struct harness *h, uid_t user, uint64_t seed)
{
    enum { REQUESTS = 5 };
    struct wire *w = wire_greet_as(h, user);
    struct shuf__result_message small = wire_permutation(SMALL, SHUF__TRANSPORT__TRANSPORT_NONE);
    for (int i = 0; i < REQUESTS; i++) {
        small.permutation.seed = seed + i;
        wire_send_result(w, &small);
        wire_expect(w, SHUF_OK, "");
    }
    wire_close(w);
}

/* Small jobs do not wait for calls of large ones, not even for those of their own user. */
static void test_small_jobs_come_first(void **state)
{
    (void)state;
    enum { USERS = 5 };
    struct harness h;
    struct wire *user[USERS];
    faults->calls_hang = true;
    start_gpu(&h, 1);
    for (unsigned i = 0; i < USERS; i++)
        user[i] = begin_endless_job(&h, USER + i, i);
    wire_await_queued(&h, USERS);
    for (unsigned waited = 0; seen->calls == 0;)
        wire_wait(&waited, "a call of the device");
    for (unsigned i = 0; i <= USERS; i++)
        expect_small_results(&h, USER + i, 10 * i);
    assert_int_equal(seen->calls_done, 0);
    assert_int_equal(wire_status(&h).queued, USERS);
    faults->calls_hang = false;
    for (unsigned i = 0; i < USERS; i++)
        wire_close(user[i]);
    assert_true(harness_stop(&h));
}

/* A lane has memory of the GPU, so the jobs of a single user have only one lane, beside those for
 * small and for urgent jobs. */
static void test_one_user_has_one_lane(void **state)
{
    (void)state;
    enum { JOBS = 3 };
    struct harness h;
    struct wire *job[JOBS];
    start_gpu(&h, 1000);
    for (unsigned i = 0; i < JOBS; i++) {
        job[i] = begin_endless_job(&h, USER, i);
        wire_await_queued(&h, i + 1);
    }
    for (unsigned waited = 0; seen->calls < 10;)
        wire_wait(&waited, "calls of the device");
    assert_int_equal(seen->opened, 4);
    for (unsigned i = 0; i < JOBS; i++)
        wire_close(job[i]);
    assert_true(harness_stop(&h));
}

/* A job that does not pause keeps the device from the others only for a time. The other users then
 * take turns, even if a turn has passed when their jobs begin, and nothing else wakes the loop. */
static void test_users_take_turns_beside_a_stuck_job(void **state)
{
    (void)state;
    enum { USERS = 3, CALLS = 10 };
    struct harness h;
    struct wire *user[USERS];
    start_gpu(&h, 1000);
    faults->workspace_us = 5000;
    faults->full_later = true;
    faults->full_count = 1;
    faults->full_from = seen->allocations + 1;
    user[0] = begin_endless_job(&h, USER, 0);
    for (unsigned waited = 0; seen->allocations < faults->full_from;)
        wire_wait(&waited, "the first job allocates memory");
    for (unsigned i = 1; i < USERS; i++)
        user[i] = begin_endless_job(&h, USER + i, i);
    for (unsigned i = 1, waited = 0; i < USERS; i++)
        while (seen->calls_of[i] < CALLS)
            wire_wait(&waited, "calls of the other users");
    assert_int_equal(seen->calls_of[0], 0);
    faults->full_later = false;
    for (unsigned i = 0; i < USERS; i++)
        wire_close(user[i]);
    assert_true(harness_stop(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_calls_of_users_do_not_queue_up, fake_backend_reset),
        cmocka_unit_test_setup(test_small_jobs_come_first, fake_backend_reset),
        cmocka_unit_test_setup(test_one_user_has_one_lane, fake_backend_reset),
        cmocka_unit_test_setup(test_users_take_turns_beside_a_stuck_job, fake_backend_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
