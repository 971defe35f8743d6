/* SPDX-License-Identifier: MIT
 *
 * One handle in several threads. While one thread is in a call, the calls of the other threads fail
 * and do not change the running call.
 */
#include "support/client.h"
#include "support/cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REFUSED "handle: in use by another thread; expected a handle for each thread"
static const shuf_request request = {.permutation = {.n = 1000, .seed = 7}};

/* A call that waits, because its daemon is stopped by SIGSTOP. */
struct waiting_call {
    shuf *handle;
    pthread_t thread;
    shuf_status status;
};

static void *summarize(void *context)
{
    struct waiting_call *c = context;
    shuf_result result;
    do { /* during a call of the other thread this one is refused */
        c->status = shuf_summarize(c->handle, &request, &result);
    } while (c->status == SHUF_INVALID);
    return NULL;
}

/* Starts the call in another thread. The call has begun once calls of this thread are refused. */
static void begin_waiting(struct waiting_call *c)
{
    c->handle = client_open();
    assert_true(harness_pause(&harness_shared));
    assert_int_equal(pthread_create(&c->thread, NULL, summarize, c), 0);
    while (shuf_set_reconnect(c->handle, 10000) == SHUF_OK)
        usleep(1000);
}

static void end_waiting(struct waiting_call *c)
{
    harness_continue(&harness_shared);
    assert_int_equal(pthread_join(c->thread, NULL), 0);
    assert_int_equal(c->status, SHUF_OK);
    assert_true(client_check(c->handle, &request));
    shuf_close(c->handle);
}

static void calls_during_a_call_are_refused(void **state)
{
    (void)state;
    struct waiting_call c;
    shuf_daemon daemon;
    shuf_lease *lease = NULL;
    begin_waiting(&c);
    assert_string_equal(shuf_message(c.handle), REFUSED);
    client_expect(c.handle, shuf_daemon_status(c.handle, &daemon), SHUF_INVALID, REFUSED);
    client_expect(c.handle, shuf_lease_take(c.handle, &request, NULL, &lease), SHUF_INVALID,
                  REFUSED);
    client_expect(c.handle, shuf_lease_release(c.handle, &lease), SHUF_INVALID, REFUSED);
    shuf_close(c.handle); /* does nothing */
    end_waiting(&c);
}

/* The calling thread does not exist in the child. So the child may free the handle. */
static void child_forked_during_a_call_closes_handle(void **state)
{
    (void)state;
    struct waiting_call c;
    int status;
    begin_waiting(&c);
    const pid_t child = fork();
    if (child == 0) {
        shuf_daemon daemon;
        const bool refused = shuf_daemon_status(c.handle, &daemon) == SHUF_INVALID &&
                             strstr(shuf_message(c.handle), "connect again after fork()");
        shuf_close(c.handle);
        _exit(!refused);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end_waiting(&c);
}

/* ---- many threads ---------------------------------------------------------------- */

enum { THREADS = 4, CALLS = 400 };
static shuf *shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int served, refused;

/* Each call gives either the right values or the refusal. */
static void *call_repeatedly(void *context)
{
    const bool with_mutex = context != NULL;
    uint32_t expected[1000], out[1000];
    shuf *own = client_open();
    assert_int_equal(shuf_copy(own, &request, expected, sizeof expected, NULL), SHUF_OK);
    for (int i = 0; i < CALLS; i++) {
        if (with_mutex)
            pthread_mutex_lock(&mutex);
        memset(out, 0, sizeof out);
        if (shuf_copy(shared, &request, out, sizeof out, NULL) == SHUF_OK) {
            served++;
            assert_memory_equal(out, expected, sizeof out);
        } else {
            refused++;
            assert_string_equal(shuf_message(shared), REFUSED);
        }
        if (with_mutex)
            pthread_mutex_unlock(&mutex);
    }
    shuf_close(own);
    return NULL;
}

static void run_threads(void *context)
{
    pthread_t threads[THREADS];
    served = refused = 0;
    shared = client_open();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_repeatedly, context), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(served + refused, THREADS * CALLS);
    assert_true(client_check(shared, &request));
    shuf_close(shared);
}

static void concurrent_calls_succeed_or_are_refused(void **state)
{
    (void)state;
    run_threads(NULL);
    assert_true(served > 0);
}

static void serialized_calls_succeed(void **state)
{
    (void)state;
    run_threads(&mutex);
    assert_int_equal(refused, 0);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_during_a_call_are_refused),
        cmocka_unit_test(child_forked_during_a_call_closes_handle),
        cmocka_unit_test(concurrent_calls_succeed_or_are_refused),
        cmocka_unit_test(serialized_calls_succeed),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
