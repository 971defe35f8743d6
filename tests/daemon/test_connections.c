/* SPDX-License-Identifier: MIT
 *
 * The descriptors of connections: all connections of a process share the one that reports its end.
 * A connection is refused before descriptors run out, so every accepted one can get a lease. It is
 * refused too if the kernel does not tell its user.
 */
#include "support/child.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/random.h"
#include "support/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MANY = 40,
    N = 1000,
    FILES = 212, /* 100 of them are not reserved: 75 for connections and processes */
    PROCESSES =
        36, /* that fit if each has one connection, beside one user and the listening socket */
    CONNECTIONS = 60, /* clients of the configuration */
    FIRST = 50,       /* of the inherited descriptors */
    INHERITED = 150,
    REFUSED = 500 /* more than the daemon refuses at a time */
};

static struct harness h;
static Shuf__Transport backend_transport;

static int descriptors(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)h.pid);
    return count_entries(path);
}

/* The least of some counts: the daemon opens a file of /proc for a moment now and then. */
static int kept_descriptors(void)
{
    int least = descriptors();
    for (int i = 0; i < 100; i++) {
        usleep(1000);
        const int count = descriptors();
        least = count < least ? count : least;
    }
    return least;
}

static void await_descriptors(int count)
{
    for (unsigned waited = 0; descriptors() != count;)
        wire_wait(&waited, "the descriptors of the daemon");
}

static void start_with(const char *config)
{
    wire_start(&h, harness_backend, config);
    backend_transport = wire_backend_transport(harness_backend);
}

static int start(void **state)
{
    (void)state;
    start_with("");
    return 0;
}

static int start_with_two(void **state)
{
    (void)state;
    start_with("clients = 2\n");
    return 0;
}

/* The limit cannot be raised again, so only the last tests set it. */
static void start_with_files(rlim_t files, int clients)
{
    const struct rlimit few = {files, files};
    char config[64];
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    snprintf(config, sizeof config, "clients = %d\n", clients);
    start_with(config);
}

static int start_with_few_files(void **state)
{
    (void)state;
    start_with_files(FILES, CONNECTIONS);
    return 0;
}

static int start_with_too_many_clients(void **state)
{
    (void)state;
    start_with_files(FILES, FILES);
    return 0;
}

/* The daemon inherits descriptors, which are of no use to it. */
static int start_with_inherited_files(void **state)
{
    (void)state;
    for (int i = 0; i < INHERITED; i++)
        assert_int_equal(dup2(STDERR_FILENO, FIRST + i), FIRST + i);
    start_with_files(FILES + INHERITED, CONNECTIONS);
    for (int i = 0; i < INHERITED; i++)
        close(FIRST + i);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

/* ---- One process with many connections ---- */

static void open_with_leases(struct wire *w[MANY], Shuf__Transport transport)
{
    for (int i = 0; i < MANY; i++) {
        w[i] = wire_greet(&h);
        wire_lease(w[i], N, 7, transport);
    }
}

static void hold_leases(int channel, void *context)
{
    struct wire *w[MANY];
    (void)context;
    open_with_leases(w, backend_transport);
    child_send(channel, MANY);
    child_receive(channel);
}

/* Waits until the daemon has only the connection `w` and no lease. */
static void await_only(struct wire *w)
{
    const Shuf__StatusReply *s = wire_ask_status(w);
    for (unsigned waited = 0; s->clients > 1 || s->leases > 0 || s->pending_free > 0;) {
        wire_wait(&waited, "the end of the other connections");
        s = wire_ask_status(w);
    }
}

/* In the first round the daemon opens descriptors that it keeps: of the block, and of the driver.
 */
static void killed_process_leaves_nothing(void **state)
{
    (void)state;
    int before = 0;
    struct wire *w = wire_greet(&h);
    for (int round = 0; round < 2; round++) {
        const struct child child = child_start(hold_leases, NULL);
        child_receive(child.channel);
        assert_int_equal(wire_ask_status(w)->leases, MANY);
        if (round > 0)
            await_descriptors(before + MANY + 1);
        child_kill(&child);
        await_only(w);
        if (round > 0)
            await_descriptors(before);
        before = kept_descriptors();
    }
    wire_close(w);
}

/* The daemon keeps a block for the result, which has a descriptor too. */
static int warm_up(void)
{
    struct wire *w = wire_greet(&h);
    wire_lease(w, N, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_check_alive(w); /* the daemon has closed its copy of the sent descriptor */
    const int count = kept_descriptors();
    wire_close(w);
    await_descriptors(count - 3); /* the socket, the pidfd and the set of the user's sockets */
    return count - 3;
}

/* Whether the daemon has a descriptor of the file. */
static bool has_open(const char *name)
{
    char link[64], target[256];
    bool found = false;
    for (int fd = 0; fd < FILES && !found; fd++) {
        snprintf(link, sizeof link, "/proc/%ld/fd/%d", (long)h.pid, fd);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        found = length == (ssize_t)strlen(name) && memcmp(target, name, strlen(name)) == 0;
    }
    return found;
}

/* Each close() would search the locks that other processes have set on the file. */
static void files_about_memory_stay_open(void **state)
{
    (void)state;
    static char text[1 << 17];
    char own[64];
    Shuf__Metrics metrics = SHUF__METRICS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    warm_up();
    struct wire *w = wire_greet(&h);
    request.body_case = SHUF__REQUEST__BODY_METRICS;
    request.metrics = &metrics;
    wire_send(w, &request);
    const size_t size = wire_receive(w)->payload_bytes;
    assert_in_range(size, 1, sizeof text);
    wire_read_payload(w, text, size);
    snprintf(own, sizeof own, "/proc/%ld/statm", (long)h.pid);
    for (int i = 0; i < 50; i++, usleep(1000))
        assert_true(has_open("/proc/meminfo") && has_open(own));
    wire_close(w);
}

static void connections_end_in_any_order(void **state)
{
    (void)state;
    struct wire *w[MANY];
    const int before = warm_up();
    open_with_leases(w, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    for (int left = MANY; left > 0; left--) {
        await_descriptors(before + left + 2);
        const uint64_t one = random_below((uint64_t)left);
        wire_close(w[one]);
        w[one] = w[left - 1];
    }
    await_descriptors(before);
}

static rlim_t limit_of_daemon(void)
{
    struct rlimit limit;
    assert_int_equal(prlimit(h.pid, RLIMIT_NOFILE, NULL, &limit), 0);
    return limit.rlim_cur;
}

static void set_files_of_daemon(rlim_t files)
{
    struct rlimit limit;
    assert_int_equal(prlimit(h.pid, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = files < limit.rlim_max ? files : limit.rlim_max;
    assert_int_equal(prlimit(h.pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* The daemon opens the descriptor of a block when it sends the reply. If that fails, the reply is a
 * failure, and no lease remains. */
static void failed_descriptor_is_a_failed_lease(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    permute.permutation.seed = 7;
    wire_lease(w, N, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_check_alive(other);
    set_files_of_daemon(3);
    wire_send_result(other, &permute);
    wire_expect(other, SHUF_IO, strerror(EMFILE));
    set_files_of_daemon(RLIM_INFINITY);
    WIRE_AWAIT(&h, s, s.leases == 1);
    assert_true(wire_lease(other, N, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD)->descriptor);
    WIRE_AWAIT(&h, s, s.leases == 2);
    wire_close(w);
    wire_close(other);
    WIRE_AWAIT(&h, s, s.leases == 0);
}

/* ---- The limit ---- */

static void hold_one(int channel, void *context)
{
    struct wire *w = wire_greet(&h);
    (void)context;
    wire_lease(w, N, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    child_send(channel, 1);
    child_receive(channel);
}

static void expect_refusal(const char *text)
{
    struct wire *w = wire_open(&h);
    wire_expect(w, SHUF_BUSY, text);
    wire_close(w);
}

static void use_all_connections_of_one_process(void)
{
    struct wire *w[CONNECTIONS];
    const int before = warm_up();
    for (int i = 0; i < CONNECTIONS; i++) {
        w[i] = wire_greet(&h);
        wire_lease(w[i], N, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    }
    expect_refusal("clients 60: the most that may be connected; try again later");
    for (int i = 0; i < CONNECTIONS; i++)
        wire_close(w[i]);
    await_descriptors(before);
}

/* All connections are of this process, so the limit of open files allows the most. */
static void limit_of_files_is_named(void **state)
{
    enum { FIT = 72 };
    struct wire *w[FIT];
    (void)state;
    assert_true(metrics_read_value(&h, "shufd_clients_limit") == FIT);
    for (int i = 0; i < FIT; i++)
        w[i] = wire_greet(&h);
    expect_refusal("clients 72: the most that the limit of open files allows; try again later");
    for (int i = 0; i < FIT; i++)
        wire_close(w[i]);
}

/* This process has no connection now. */
static void processes_are_refused_before_descriptors_run_out(void **state)
{
    (void)state;
    struct child child[PROCESSES];
    use_all_connections_of_one_process();
    const int before = kept_descriptors();
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = child_start(hold_one, NULL);
        child_receive(child[i].channel);
    }
    expect_refusal("connections and processes 75: the most that the limit of open files allows");
    assert_true(descriptors() < (int)limit_of_daemon());
    for (int i = 0; i < PROCESSES; i++)
        child_kill(&child[i]);
    await_descriptors(before);
    assert_int_equal(wire_status(&h).leases, 0);
}

/* Most of them send more than the daemon reads, so they may get a reset after the reply. */
static void refused_connections_get_their_reply(void **state)
{
    struct wire *refused[REFUSED];
    static const uint8_t bytes[100000];
    struct wire *used[] = {wire_greet(&h), wire_greet(&h)};
    const int before = kept_descriptors();
    (void)state;
    for (int i = 0; i < REFUSED; i++) {
        refused[i] = wire_open(&h);
        if (i % 8)
            (void)!send(refused[i]->fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    for (int i = 0; i < REFUSED; i++) {
        wire_expect(refused[i], SHUF_BUSY, "clients 2: the most that may be connected");
        wire_close(refused[i]);
    }
    await_descriptors(before);
    wire_lease(used[1], N, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_close(used[0]);
    wire_close(used[1]);
}

/* The daemon refuses at most one in 125 microseconds, so a flood does not take its time. Without
 * this pause it refuses 500 in about 10 milliseconds. */
static void refusals_have_pauses(void **state)
{
    struct wire *refused[REFUSED];
    struct wire *used[] = {wire_greet(&h), wire_greet(&h)};
    struct timespec began, ended;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < REFUSED; i++)
        refused[i] = wire_open(&h);
    wire_expect(refused[REFUSED - 1], SHUF_BUSY, "clients 2: the most that may be connected");
    clock_gettime(CLOCK_MONOTONIC, &ended);
    const long took_us =
        (ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000;
    assert_true(took_us >= (REFUSED - 1) * 125);
    for (int i = 0; i < REFUSED; i++)
        wire_close(refused[i]);
    wire_close(used[0]);
    wire_close(used[1]);
}

/* The daemon ends while the thread still has connections to refuse. */
static void await_status(struct wire *w, uint64_t leases, uint64_t clients)
{
    const Shuf__StatusReply *found;
    for (unsigned waited = 0;
         (found = wire_ask_status(w))->leases != leases || found->clients != clients;)
        wire_wait(&waited, "the counts of the status");
}

/* A client asks for a lease by descriptor, ends its sending side and does not read. The descriptor
 * stays in the kernel, so the connection stays one of its user until the client closes it. */
static void unread_reply_keeps_its_connection(void **state)
{
    (void)state;
    struct wire *lazy = wire_greet(&h), *other = wire_greet(&h), *third;
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_send_result(lazy, &permute);
    await_status(other, 1, 2);
    shutdown(lazy->fd, SHUT_WR);
    await_status(other, 0, 2);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(wire_ask_status(other)->clients, 2);
        expect_refusal("clients");
        usleep(100000);
    }
    wire_expect(lazy, SHUF_OK, ""); /* it still gets its reply, and then the end */
    wire_expect_end(lazy);
    await_status(other, 0, 1);
    third = wire_greet(&h);
    wire_close(third);
    wire_close(other);
    wire_close(lazy);
}

/* They keep the backlog full, in which the connections of others wait. After a second, the daemon
 * closes what it must refuse without a reply, and so empties the backlog. */
static void flood_of_refused_connections_is_dropped(void **state)
{
    enum { MOST = 200000 };
    char reply[256];
    struct wire *used[] = {wire_greet(&h), wire_greet(&h)};
    int refused = 0, dropped = 0;
    (void)state;
    while (refused + dropped < MOST && dropped == 0) {
        int fds[REFUSED];
        for (int i = 0; i < REFUSED; i++)
            fds[i] = harness_connect(h.socket);
        for (int i = 0; i < REFUSED; i++) {
            *(recv(fds[i], reply, sizeof reply, 0) > 0 ? &refused : &dropped) += 1;
            close(fds[i]);
        }
    }
    assert_true(refused > 0);
    assert_true(dropped > 0);
    wire_check_alive(used[1]);
    wire_close(used[0]);
    wire_close(used[1]);
}

static void daemon_ends_beside_refused_connections(void **state)
{
    struct wire *refused[REFUSED];
    struct wire *used[] = {wire_greet(&h), wire_greet(&h)};
    (void)state;
    for (int i = 0; i < REFUSED; i++)
        refused[i] = wire_open(&h);
    assert_true(harness_stop(&h));
    for (int i = 0; i < REFUSED; i++)
        wire_close(refused[i]);
    wire_close(used[0]);
    wire_close(used[1]);
    start_with_two(NULL);
}

/* ---- An unknown user would have no limits, or the rights of another one ---- */

static void client_of_unknown_user_is_refused(void **state)
{
    const char *library = getenv("SHUF_FAKE_LIBRARY");
    (void)state;
    if (!library) /* a sanitizer must be the first library of a process */
        skip();
    assert_int_equal(setenv("LD_PRELOAD", library, 1), 0);
    assert_int_equal(setenv("SHUF_FAKE", "no_peer", 1), 0);
    const bool started = harness_start(&h, "cpu", NULL);
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    assert_true(started);
    struct wire *w = wire_open(&h);
    wire_expect(w, SHUF_IO,
                "the user of the connection cannot be read: No buffer space available; try again");
    wire_close(w);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    closefrom(STDERR_FILENO + 1); /* a daemon counts its inherited descriptors */
    random_start("connections");
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_process_leaves_nothing, start, stop),
        cmocka_unit_test_setup_teardown(files_about_memory_stay_open, start, stop),
        cmocka_unit_test_setup_teardown(connections_end_in_any_order, start, stop),
        cmocka_unit_test_setup_teardown(failed_descriptor_is_a_failed_lease, start, stop),
        cmocka_unit_test_setup_teardown(refused_connections_get_their_reply, start_with_two, stop),
        cmocka_unit_test_setup_teardown(unread_reply_keeps_its_connection, start_with_two, stop),
        cmocka_unit_test_setup_teardown(refusals_have_pauses, start_with_two, stop),
        cmocka_unit_test_setup_teardown(flood_of_refused_connections_is_dropped, start_with_two,
                                        stop),
        cmocka_unit_test_setup_teardown(daemon_ends_beside_refused_connections, start_with_two,
                                        stop),
        cmocka_unit_test_setup_teardown(processes_are_refused_before_descriptors_run_out,
                                        start_with_inherited_files, stop),
        cmocka_unit_test_setup_teardown(processes_are_refused_before_descriptors_run_out,
                                        start_with_few_files, stop),
        cmocka_unit_test_setup_teardown(limit_of_files_is_named, start_with_too_many_clients, stop),
        cmocka_unit_test(client_of_unknown_user_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
