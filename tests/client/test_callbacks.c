/* SPDX-License-Identifier: MIT
 *
 * The callbacks of a call, and one handle in several threads. The events report the received bytes.
 * While a call runs, a call with the same handle by a callback or another thread fails, and the
 * running call continues.
 */
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/take.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MI = 1 << 20, STEP = 64 * MI, LARGE_N = 18400003, LARGE_BYTES = LARGE_N * 4 };
static const shuf_request small = {.permutation = {.n = 1000, .seed = 7}};
static const shuf_request large = {.permutation = {.n = LARGE_N, .seed = 7}};

/* ---- Events ---- */

struct events {
    unsigned count[SHUF_EVENT_PART + 1];
    uint64_t done[SHUF_EVENT_PART + 1];
    uint64_t first; /* bytes of the first part */
    bool kills;
    uint64_t bytes; /* bytes received by the sink */
};

static void note_event(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    struct events *e = context;
    assert_int_equal(all, LARGE_BYTES);
    if (event == SHUF_EVENT_PART && e->count[event] == 0)
        e->first = done;
    e->count[event]++;
    e->done[event] = done;
}

static bool count_bytes(void *context, const void *bytes, size_t size)
{
    struct events *e = context;
    (void)bytes;
    e->bytes += size;
    if (e->kills && e->bytes > STEP) {
        e->kills = false;
        harness_kill(&harness_shared, SIGKILL);
        assert_true(harness_restart(&harness_shared));
    }
    return true;
}

/* One step of 64 MiB, and the end. */
static void expect_step_and_end(const struct events *e)
{
    assert_int_equal(e->count[SHUF_EVENT_PART], 2);
    assert_in_range(e->first, STEP, STEP + MI);
    assert_int_equal(e->done[SHUF_EVENT_PART], LARGE_BYTES);
}

static void observer_sees_parts_of_bytes(void **state)
{
    (void)state;
    shuf *handle = client_open();
    shuf_lease *lease = NULL;
    const shuf_lease_options copy = {.transports = SHUF_INLINE};
    void *out = malloc(LARGE_BYTES);
    struct events to_memory = {.bytes = 0}, to_sink = {.bytes = 0}, leased = {.bytes = 0};
    shuf_set_observer(handle, note_event, &to_memory);
    client_expect(handle, shuf_copy(handle, &large, out, LARGE_BYTES, NULL), SHUF_OK, "");
    expect_step_and_end(&to_memory);
    shuf_set_observer(handle, note_event, &to_sink);
    client_expect(handle, shuf_each(handle, &large, count_bytes, &to_sink, NULL), SHUF_OK, "");
    expect_step_and_end(&to_sink);
    shuf_set_observer(handle, note_event, &leased);
    client_expect(handle, shuf_lease_take(handle, &large, &copy, &lease), SHUF_OK, "");
    expect_step_and_end(&leased);
    shuf_close(handle);
    free(out);
}

static void observer_sees_bytes_before_a_loss(void **state)
{
    (void)state;
    shuf *handle = client_open();
    struct events e = {.kills = true};
    shuf_set_observer(handle, note_event, &e);
    client_expect(handle, shuf_each(handle, &large, count_bytes, &e, NULL), SHUF_OK, "");
    assert_int_equal(e.bytes, LARGE_BYTES);
    assert_int_equal(e.count[SHUF_EVENT_LOST], 1);
    assert_int_equal(e.count[SHUF_EVENT_FOUND], 1);
    assert_in_range(e.done[SHUF_EVENT_LOST], STEP, LARGE_BYTES - 1);
    assert_int_equal(e.done[SHUF_EVENT_FOUND], e.done[SHUF_EVENT_LOST]);
    shuf_close(handle);
}

/* ---- The end of a transfer ---- */

/* 80 MiB: in one part, and more than the call discards. */
static const shuf_request wide = {.permutation = {.n = 10 * MI, .seed = 7, .dtype = SHUF_U64}};

static bool stop_at_once(void *context, const void *bytes, size_t size)
{
    (void)bytes;
    *(uint64_t *)context += size;
    return false;
}

static bool count_entry(void *context, const shuf_lease_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return true;
}

static unsigned count_leases(shuf *handle)
{
    unsigned count = 0;
    client_expect(handle, shuf_leases(handle, count_entry, &count), SHUF_OK, "");
    return count;
}

/* A handle with a buffer, and an observer that counts events. */
struct stopped {
    shuf *handle;
    shuf_lease *buffer;
    uint64_t bytes;
    unsigned events;
};

static void count_event(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)done;
    (void)all;
    *(unsigned *)context += event != SHUF_EVENT_PART;
}

static void open_stopped(struct stopped *s)
{
    *s = (struct stopped){.handle = client_open()};
    client_expect(s->handle, take_buffer(s->handle, 4000, NULL, &s->buffer), SHUF_OK, "");
    shuf_set_observer(s->handle, count_event, &s->events);
}

static shuf_status shuffle_buffer(struct stopped *s)
{
    static const shuf_records records = {.n = 1000, .record = 4, .seed = 7};
    shuf_lease *shuffled = NULL;
    const shuf_status status = take_shuffle(s->handle, &records, s->buffer, NULL, &shuffled);
    assert_true((status == SHUF_OK) == (shuffled != NULL));
    return status;
}

static void expect_leases_kept(struct stopped *s, shuf_status got)
{
    client_expect(s->handle, got, SHUF_CANCELLED, "stopped by its sink");
    assert_int_equal(count_leases(s->handle), 1);
    client_expect(s->handle, shuffle_buffer(s), SHUF_OK, "");
    assert_int_equal(s->events, 0);
    assert_true(client_check(s->handle, &small));
    shuf_close(s->handle);
}

/* The sink stops after the last byte, and long before it. */
static void stopped_sink_keeps_leases(void **state)
{
    (void)state;
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_GAUSS, .seed = 7, .count = MI, .std = 1}};
    const shuf_records records = {.n = MI, .record = 4, .seed = 7};
    char *in = calloc(MI, 4);
    struct stopped s;
    open_stopped(&s);
    expect_leases_kept(&s, shuf_each(s.handle, &small, stop_at_once, &s.bytes, NULL));
    assert_int_equal(s.bytes, 4000);
    open_stopped(&s);
    expect_leases_kept(&s, shuf_each(s.handle, &(shuf_request){.permutation = {.n = 4 * MI}},
                                     stop_at_once, &s.bytes, NULL));
    open_stopped(&s);
    expect_leases_kept(&s, shuf_each(s.handle, &numbers, stop_at_once, &s.bytes, NULL));
    open_stopped(&s);
    expect_leases_kept(
        &s, shuf_shuffle_each(s.handle, &records, in, MI * 4, stop_at_once, &s.bytes, NULL));
    free(in);
}

/* A call that has too many bytes left closes the connection. The next message says so, and no event
 * reports a loss. */
static void stopped_sink_ends_leases_of_a_long_transfer(void **state)
{
    (void)state;
    struct stopped s;
    open_stopped(&s);
    client_expect(s.handle, shuf_each(s.handle, &wide, stop_at_once, &s.bytes, NULL),
                  SHUF_CANCELLED, "stopped by its sink");
    client_expect(s.handle, shuffle_buffer(&s), SHUF_NO_DAEMON,
                  "a sink that stopped a transfer closed the connection that held the buffer");
    assert_true(client_check(s.handle, &small));
    client_expect(s.handle, shuffle_buffer(&s), SHUF_NO_DAEMON, "a sink that stopped");
    assert_int_equal(s.events, 0);
    shuf_close(s.handle);
}

/* ---- Calls of the handle ---- */

struct callback_user {
    shuf *handle;
    shuf_lease *lease;
    unsigned calls;
    size_t bytes;
    uint32_t values[1000];
};

static void use_handle(struct callback_user *u)
{
    static const char words[] = "in use by the call that called this sink, observer or visitor";
    uint32_t out[1000];
    shuf_daemon daemon;
    shuf_lease *other = NULL;
    shuf *h = u->handle;
    client_expect(h, shuf_copy(h, &small, out, sizeof out, NULL), SHUF_INVALID, words);
    client_expect(h, shuf_daemon_status(h, &daemon), SHUF_INVALID, words);
    client_expect(h, shuf_lease_take(h, &small, NULL, &other), SHUF_INVALID, words);
    client_expect(h, shuf_lease_release(h, &u->lease), SHUF_INVALID, words);
    client_expect(h, shuf_set_timeout(h, 1), SHUF_INVALID, words);
    shuf_close(h);
    assert_non_null(u->lease);
    u->calls++;
}

static bool use_in_sink(void *context, const void *bytes, size_t size)
{
    struct callback_user *u = context;
    memcpy((char *)u->values + u->bytes, bytes, size);
    u->bytes += size;
    use_handle(u);
    return true;
}

static bool use_in_visitor(void *context, const shuf_lease_entry *entry)
{
    (void)entry;
    use_handle(context);
    return true;
}

static void use_in_observer(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)event;
    (void)done;
    (void)all;
    use_handle(context);
}

static void expect_handle_unharmed(struct callback_user *u, shuf_status got)
{
    client_expect(u->handle, got, SHUF_OK, "");
    assert_string_equal(shuf_message(u->handle), "");
    assert_true(u->calls > 0);
    u->calls = 0;
}

static void calls_in_callbacks_are_refused(void **state)
{
    (void)state;
    static const shuf_records records = {.n = 1000, .record = 4, .seed = 7};
    uint32_t in[1000];
    struct callback_user u = {.handle = client_open()};
    uint64_t *values = expected_values(&small, NULL);
    void *out = malloc(LARGE_BYTES);
    for (uint32_t i = 0; i < small.permutation.n; i++)
        in[i] = i;
    client_expect(u.handle, shuf_lease_take(u.handle, &small, NULL, &u.lease), SHUF_OK, "");
    expect_handle_unharmed(&u, shuf_each(u.handle, &small, use_in_sink, &u, NULL));
    assert_true(expected_equal(values, u.values, 4, small.permutation.n));
    u.bytes = 0;
    expect_handle_unharmed(
        &u, shuf_shuffle_each(u.handle, &records, in, sizeof in, use_in_sink, &u, NULL));
    assert_true(expected_equal(values, u.values, 4, small.permutation.n));
    expect_handle_unharmed(&u, shuf_leases(u.handle, use_in_visitor, &u));
    shuf_set_observer(u.handle, use_in_observer, &u);
    expect_handle_unharmed(&u, shuf_copy(u.handle, &large, out, LARGE_BYTES, NULL));
    assert_true(expected_equal(values, u.lease->data, 4,
                               small.permutation.n)); /* the handle is still open */
    assert_true(client_check(u.handle, &small));
    free(values);
    free(out);
    shuf_close(u.handle);
}

/* ---- Threads ---- */

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

/* ---- Many threads ---- */

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
        cmocka_unit_test(observer_sees_parts_of_bytes),
        cmocka_unit_test(observer_sees_bytes_before_a_loss),
        cmocka_unit_test(stopped_sink_keeps_leases),
        cmocka_unit_test(stopped_sink_ends_leases_of_a_long_transfer),
        cmocka_unit_test(calls_in_callbacks_are_refused),
        cmocka_unit_test(calls_during_a_call_are_refused),
        cmocka_unit_test(child_forked_during_a_call_closes_handle),
        cmocka_unit_test(concurrent_calls_succeed_or_are_refused),
        cmocka_unit_test(serialized_calls_succeed),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
