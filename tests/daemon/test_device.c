/* SPDX-License-Identifier: MIT
 *
 * A daemon with a simulated device: its memory cannot be read by the host, it fails, or users take
 * turns of it.
 */
#include "engine/turns.h"
#include "net/outbox.h"
#include "shuf/fingerprint.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static void start(struct harness *h)
{
    static const char *const no_options[] = {NULL};
    fake_backend_start(h, no_options);
}

static void kill_and_expect_exit(struct harness *h, int signal, int code, const char *text)
{
    char log[8192];
    int status = harness_kill(h, signal);
    FILE *file = fopen(h->log, "re");
    assert_non_null(file);
    log[fread(log, 1, sizeof log - 1, file)] = '\0';
    fclose(file);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(log, text))
        fail_msg("expected exit %d with \"%s\", got wait status 0x%x with \"%s\"", code, text,
                 (unsigned)status, log);
    assert_true(harness_stop(h));
}

/* ---- Tests ---- */

/* Compares the n received values with the fingerprint, which the device computed from its
 * memory. */
static void check_values(struct wire *w, uint64_t n)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    uint32_t *values = malloc(n * sizeof *values);
    uint64_t sum = 0;
    assert_non_null(values);
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    uint64_t fingerprint = reply->result->fingerprint;
    assert_int_equal(reply->payload_bytes, n * sizeof *values);
    wire_read_payload(w, values, n * sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        sum += shuf_fingerprint_term(i, values[i]);
    free(values);
    assert_int_equal(sum, fingerprint);
}

static void test_chunks_of_device_memory(void **state)
{
    (void)state;
    enum { PER_CHUNK = SHUF__PAYLOAD_CHUNK / 4 };
    static const uint64_t sizes[] = {1,
                                     10,
                                     PER_CHUNK - 1,
                                     PER_CHUNK,
                                     PER_CHUNK + 1,
                                     2 * PER_CHUNK,
                                     2 * PER_CHUNK + 1,
                                     3 * PER_CHUNK,
                                     40 * PER_CHUNK + 7};
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_values(w, sizes[i]);
    wire_check_alive(w);
    wire_close(w);
    wire_await_memory_free(&h);
    assert_true(harness_stop(&h));
}

/* The fake device keeps its memory in host memory, so the results count as host memory. */
static void test_unread_results(void **state)
{
    (void)state;
    struct harness h;
    start(&h);
    wire_check_unread_results(&h, true);
    assert_true(harness_stop(&h));
}

static void test_client_leaves_during_read(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message permute =
        wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults->read_us = 20000;
    start(&h);
    for (int i = 0; i < 10; i++) {
        struct wire *w = wire_greet(&h);
        wire_send_result(w, &permute);
        wire_expect(w, SHUF_OK, "");
        usleep((useconds_t)i * 4000);
        wire_close(w);
    }
    wire_await_memory_free(&h);
    assert_true(harness_stop(&h));
}

/* Returns a client with a pending job. Before the job, the client sent more requests than one
 * iteration of the loop serves. */
static struct wire *begin_after_requests(const struct harness *h)
{
    enum { REQUESTS = 17 };
    uint8_t bytes[(REQUESTS + 1) * 64];
    size_t used = 0;
    Shuf__Status status = SHUF__STATUS__INIT;
    struct shuf__result_message permute =
        wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct wire *w = wire_greet(h);
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    for (int i = 0; i < REQUESTS; i++)
        used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = shuf__result_message_link(&permute);
    used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    wire_send_bytes(w, bytes, used);
    return w;
}

/* Returns a client with a pending job. Before the job, the client received a result that exceeds
 * the socket's buffer, so the loop has waited for room in the socket. */
static struct wire *begin_after_large_result(const struct harness *h)
{
    enum { N = 1 << 20 };
    static uint32_t values[N];
    struct shuf__result_message inline_permute =
        wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    struct shuf__result_message last = wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_greet(h);
    wire_send_result(w, &inline_permute);
    wire_send_result(w, &last);
    w->id--;
    wire_expect(w, SHUF_OK, "");
    wire_read_payload(w, values, sizeof values);
    return w;
}

static double cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The loop sleeps while a job runs: the daemon uses almost no time of the CPU. */
static void test_loop_sleeps_while_computing(void **state)
{
    (void)state;
    static struct wire *(*const begin[])(const struct harness *) = {begin_after_requests,
                                                                    begin_after_large_result};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++) {
        struct harness h;
        start(&h);
        struct wire *w = begin[i](&h);
        wire_await_queued(&h, 1);
        double before = cpu_seconds(h.pid);
        usleep(500000);
        assert_true(cpu_seconds(h.pid) < before + 0.1);
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

/* SIGTERM while the client reads a result in chunks: the daemon sends all chunks before it ends. */
static void test_drain_sends_all_chunks(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static uint32_t values[N];
    struct harness h;
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults->read_us = 1000;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    kill(h.pid, SIGTERM);
    wire_read_payload(w, values, sizeof values);
    wire_expect_end(w);
    wire_close(w);
    kill_and_expect_exit(&h, 0, EX_OK, "");
}

static void test_device_fails(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    faults->permute_fails = true;
    start(&h);
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_DEVICE, "the device is on fire");
    wire_expect_end(w);
    wire_expect_end(other);
    wire_close(w);
    wire_close(other);
    kill_and_expect_exit(&h, 0, EX_IOERR,
                         "the device failed, ending: permute: the device is on fire");
}

/* Checks the first bytes of the permutation of n that wire_permutation() requests. */
static void expect_values(const uint8_t *bytes, size_t size, uint64_t n)
{
    shuf_primefold f = shuf_primefold_make(n, 7, 0);
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t value;
        memcpy(&value, bytes + at, sizeof value);
        assert_int_equal(value, shuf_primefold_forward(&f, at / 4));
    }
}

static void test_device_fails_during_payload(void **state)
{
    (void)state;
    struct harness h;
    enum { MOST = 1 << 20 };
    static uint8_t bytes[MOST + 1];
    size_t got = 0;
    ssize_t part;
    struct shuf__result_message permute =
        wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults->read_fails_from = MOST;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    while (got < sizeof bytes && (part = recv(w->fd, bytes + got, sizeof bytes - got, 0)) > 0)
        got += (size_t)part;
    assert_in_range(got, 1, MOST); /* the bytes end early, and no wrong byte was sent */
    expect_values(bytes, got, permute.permutation.n);
    wire_close(w);
    kill_and_expect_exit(&h, 0, EX_IOERR, "the device failed, ending: read: the device is on fire");
}

/* A client gets a lease with an event before the result is computed. It may shuffle that result at
 * once: the engine completes the computation first, even if the shuffle is small. */
static void test_shuffle_of_result_being_computed(void **state)
{
    (void)state;
    struct harness h;
    Shuf__Transport ipc = SHUF__TRANSPORT__TRANSPORT_CUDA_IPC;
    struct shuf__result_message permute = wire_permutation(1 << 20, ipc);
    struct shuf__result_message shuffle = wire_result(SHUF__RESULT__WHAT_SHUFFLE, ipc);
    permute.delivery.event = true;
    faults->is_gpu = true;
    faults->wait_us = 200000;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    const Shuf__ResultReply *reply = wire_expect(w, SHUF_OK, "")->result;
    assert_int_equal(reply->ipc_event.len, SHUF__IPC_HANDLE);
    usleep(50000); /* the lane waits for the permutation; the shuffle would be sooner */
    faults->wait_us = 0;
    shuffle.permutation.n = 1000;
    shuffle.shuffle.record = 4;
    shuffle.permutation.seed = 3;
    shuffle.shuffle.lease = reply->lease;
    wire_send_result(w, &shuffle);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->result->record, 4);
    assert_int_equal(seen->launches, 2);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_device_hangs(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    faults->hangs = true;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    kill_and_expect_exit(&h, SIGTERM, EX_SOFTWARE, "the device does not stop");
    wire_close(w);
}

/* A prefetch has filled device memory. A summary and an inline copy use that result, so the device
 * computes only once. */
static void test_result_in_device_memory_is_reused(void **state)
{
    (void)state;
    enum { N = 3000000 };
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    struct shuf__result_message prefetch = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    prefetch.delivery.prefetch = true;
    wire_send_result(w, &prefetch);
    wire_expect(w, SHUF_OK, "");
    struct shuf__result_message summary = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_NONE);
    summary.delivery.fingerprint = true;
    wire_send_result(w, &summary);
    assert_true(wire_expect(w, SHUF_OK, "")->result->shared);
    assert_int_equal(seen->launches, 1);
    check_values(w, N);
    assert_int_equal(seen->launches, 1);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_no_device(void **state)
{
    (void)state;
    struct harness h;
    int status = fake_backend_start_without_device(&h);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_UNAVAILABLE);
    assert_true(access(h.socket, F_OK) != 0);
    assert_true(harness_stop(&h));
}

/* ---- Users take turns of a GPU, which completes each call that it has ---- */

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

/* ---- The order of users and their shares of time ---- */

#define MS UINT64_C(1000000)

enum { USERS = 4, SLICE = SHUF__TURN_HOST_MS };

static struct shuf__turns turns;
static struct shuf__engine_job job[USERS];

static int start_turns(void **state)
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
        cmocka_unit_test_setup(test_chunks_of_device_memory, fake_backend_reset),
        cmocka_unit_test_setup(test_unread_results, fake_backend_reset),
        cmocka_unit_test_setup(test_client_leaves_during_read, fake_backend_reset),
        cmocka_unit_test_setup(test_loop_sleeps_while_computing, fake_backend_reset),
        cmocka_unit_test_setup(test_drain_sends_all_chunks, fake_backend_reset),
        cmocka_unit_test_setup(test_device_fails, fake_backend_reset),
        cmocka_unit_test_setup(test_device_fails_during_payload, fake_backend_reset),
        cmocka_unit_test_setup(test_shuffle_of_result_being_computed, fake_backend_reset),
        cmocka_unit_test_setup(test_device_hangs, fake_backend_reset),
        cmocka_unit_test_setup(test_result_in_device_memory_is_reused, fake_backend_reset),
        cmocka_unit_test_setup(test_no_device, fake_backend_reset),
        cmocka_unit_test_setup(test_calls_of_users_do_not_queue_up, fake_backend_reset),
        cmocka_unit_test_setup(test_small_jobs_come_first, fake_backend_reset),
        cmocka_unit_test_setup(test_one_user_has_one_lane, fake_backend_reset),
        cmocka_unit_test_setup(test_users_take_turns_beside_a_stuck_job, fake_backend_reset),
        cmocka_unit_test_setup_teardown(users_take_turns, start_turns, stop),
        cmocka_unit_test_setup_teardown(users_share_time_equally, start_turns, stop),
        cmocka_unit_test_setup_teardown(new_user_is_next_but_not_ahead, start_turns, stop),
        cmocka_unit_test_setup_teardown(new_user_waits_for_one_turn, start_turns, stop),
        cmocka_unit_test_setup_teardown(only_waiting_users_get_turns, start_turns, stop),
        cmocka_unit_test_setup_teardown(waiting_user_is_passed_over, start_turns, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
