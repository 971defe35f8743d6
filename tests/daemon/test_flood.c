/* SPDX-License-Identifier: MIT
 *
 * Clients that send descriptors, which no request needs, and clients that open connections without
 * end. The daemon still serves other clients, and then has no more descriptors open than before. It
 * does not wait for the close() of sent sockets. "no_processes": it can start no process for that.
 */
#include "support/bystander.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum {
    DESCRIPTORS = 250, /* descriptors in a message; the kernel's limit is 253 */
    MESSAGES = 300,
    CONNECTIONS = 2000,
    AT_ONCE = 200,
};

static ssize_t try_to_send_descriptors(const struct wire *w, const void *bytes, size_t size)
{
    int descriptors[DESCRIPTORS];
    for (int i = 0; i < DESCRIPTORS; i++)
        descriptors[i] = STDERR_FILENO;
    return wire_try_descriptors(w->fd, bytes, size, descriptors, DESCRIPTORS, 0);
}

enum sent { SENT, SENT_ALONE, TOO_MANY, CUT_OFF };

/* Sends only the bytes if the kernel refuses descriptors for the daemon. TOO_MANY: the user has
 * reached the kernel's limit of descriptors in flight. CUT_OFF: the daemon has closed the
 * connection. */
static enum sent send_descriptors(const struct wire *w, const void *bytes, size_t size)
{
    ssize_t sent = try_to_send_descriptors(w, bytes, size);
    const bool refused = sent < 0 && errno == EPERM;
    if (sent < 0 && errno == ETOOMANYREFS)
        return TOO_MANY;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return CUT_OFF;
    if (refused)
        sent = send(w->fd, bytes, size, MSG_NOSIGNAL);
    assert_int_equal(sent, size);
    return refused ? SENT_ALONE : SENT;
}

/* Sends descriptors with a request. The daemon refuses them, or the kernel has done so. */
static void send_with_descriptors(const struct harness *h)
{
    struct wire *w = wire_greet(h);
    uint8_t frame[64];
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    size_t size = wire_pack(w, &request, frame, sizeof frame);
    enum sent sent;
    while ((sent = send_descriptors(w, frame, size)) == TOO_MANY)
        usleep(1000);
    assert_int_not_equal(sent, CUT_OFF);
    if (sent == SENT_ALONE)
        wire_expect(w, SHUF_OK, "");
    else
        wire_expect(w, SHUF_PROTOCOL, "bytes with descriptors: expected bytes alone");
    wire_close(w);
}

/* Sends descriptors with half a frame and closes the connection, so that the daemon never receives
 * some of them. */
static void close_with_unread_descriptors(const struct harness *h)
{
    struct wire *w = wire_greet(h);
    send_descriptors(w, "\x40\0\0\0", 4);
    for (int i = 0; i < 3; i++)
        send_descriptors(w, "\0\0\0\0", 4);
    wire_close(w);
}

static void flood_descriptors(int channel, void *context)
{
    const struct harness *h = context;
    struct wire *w = wire_greet(h);
    for (int i = 0; i < MESSAGES; i++) {
        send_with_descriptors(h);
        if (i % 4 == 0)
            close_with_unread_descriptors(h);
    }
    wire_check_alive(w);
    wire_close(w);
    child_send(channel, 0);
}

static void flood_connections(int channel, void *context)
{
    const struct harness *h = context;
    struct wire *many[AT_ONCE];
    for (int i = 0; i < CONNECTIONS; i++) {
        struct wire *w = wire_open(h);
        if (i % 3 == 0)
            wire_send_hello(w, SHUF__PROTOCOL_VERSION);
        if (i % 3 == 1)
            wire_send_bytes(w, "\xff\xff\xff\xff", 4);
        wire_close(w);
    }
    for (int i = 0; i < AT_ONCE; i++)
        many[i] = wire_open(h);
    for (int i = 0; i < AT_ONCE; i++)
        wire_close(many[i]);
    child_send(channel, 0);
}

/* Another client takes leases meanwhile. */
static void lease_meanwhile(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    for (uint64_t i = 0; i < 100; i++) {
        const Shuf__ResultReply *reply =
            wire_lease(w, 10000, i % 5, wire_backend_transport(harness_backend));
        wire_release(w, reply->lease, reply->block);
        usleep(1000);
    }
    wire_close(w);
    child_send(channel, 0);
}

static void daemon_survives_floods(void **state)
{
    (void)state;
    enum { FLOODERS = 4 };
    static void (*const bodies[FLOODERS])(int, void *) = {flood_descriptors, flood_descriptors,
                                                          flood_connections, lease_meanwhile};
    struct harness h;
    struct child children[FLOODERS], warm;
    wire_start(&h, harness_backend, "cache_time = 0\n");
    warm = child_start(lease_meanwhile, &h);
    child_receive(warm.channel);
    child_join(&warm);
    WIRE_AWAIT(&h, s, s.clients == 1 && s.blocks == 0);
    usleep(50000); /* the daemon has closed that connection too */
    unsigned before = wire_descriptors(h.pid);
    for (int i = 0; i < FLOODERS; i++)
        children[i] = child_start(bodies[i], &h);
    for (int i = 0; i < FLOODERS; i++) {
        child_receive(children[i].channel);
        child_join(&children[i]);
    }
    WIRE_AWAIT(&h, s, s.clients == 1 && s.blocks == 0 && s.leases == 0);
    for (unsigned waited = 0; wire_descriptors(h.pid) > before;)
        wire_wait(&waited, "no more descriptors than before");
    assert_true(harness_stop(&h));
}

/* Writes until the daemon has closed the connection. Returns the number of bytes that the socket
 * accepted. */
static size_t write_without_end(struct wire *w)
{
    static const uint8_t bytes[65536];
    size_t all = 0;
    for (ssize_t sent; (sent = send(w->fd, bytes, sizeof bytes, MSG_NOSIGNAL)) > 0;)
        all += (size_t)sent;
    return all;
}

/* The daemon reads once from a refused connection and closes it. A client that writes without end
 * does not keep it busy. */
static void refused_connections_cost_one_read(void **state)
{
    (void)state;
    enum { TIMES = 50, SOCKET_MOST = 4 << 20 };
    struct harness h;
    wire_start(&h, harness_backend, "clients = 1\n");
    struct wire *bystander = wire_greet(&h);
    for (int i = 0; i < TIMES; i++) {
        struct wire *w = wire_open(&h);
        assert_true(write_without_end(w) <= SOCKET_MOST);
        wire_check_alive(bystander);
        wire_close(w);
    }
    wire_close(bystander);
    assert_true(harness_stop(&h));
}

/* ---- A flood of refused connections ---- */

enum {
    HELD = 250,   /* connections that use the limit */
    FLOODERS = 8, /* processes that open connections and write without end */
    END_MS = 10000 * (1 + TEST_SANITIZED), /* the most from SIGTERM to the end */
};

static void hold_connections(int channel, void *context)
{
    struct wire *held[HELD];
    for (int i = 0; i < HELD; i++)
        held[i] = wire_greet(context);
    child_send(channel, 0);
    wire_expect_end(held[0]); /* the daemon closes it at its end */
}

/* Writes to refused connections until the daemon has ended. */
static void flood_refused(int channel, void *context)
{
    const struct harness *h = context;
    static const uint8_t bytes[65536];
    int fd;
    for (int i = 0; (fd = harness_connect(h->socket)) >= 0; i++) {
        while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
            continue;
        close(fd);
        if (i == 0)
            child_send(channel, 0);
    }
    pause(); /* child_kill() ends the child */
}

/* The flood ends with the daemon, so it also runs between SIGTERM and the end. */
static void refused_connections_do_not_delay_others(void **state)
{
    (void)state;
    struct harness h;
    struct child holder, flooders[FLOODERS];
    char config[64];
    snprintf(config, sizeof config, "clients = %d\n", HELD + 1);
    wire_start(&h, harness_backend, config);
    struct wire *bystander = wire_greet(&h);
    holder = child_start(hold_connections, &h);
    child_receive(holder.channel);
    const struct latency idle = bystander_measure("held connections", bystander);
    for (int i = 0; i < FLOODERS; i++)
        flooders[i] = child_start(flood_refused, &h);
    for (int i = 0; i < FLOODERS; i++)
        child_receive(flooders[i].channel);
    bystander_expect_near("refused connections", bystander, &idle);
    const double begin_ms = bystander_clock_ms();
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    const double end_ms = bystander_clock_ms() - begin_ms;
    printf("end beside refused connections: %.0f ms\n", end_ms);
    assert_true(end_ms <= END_MS);
    for (int i = 0; i < FLOODERS; i++)
        child_kill(&flooders[i]);
    child_join(&holder);
    wire_close(bystander);
    assert_true(harness_stop(&h));
}

/* ---- Sockets whose close() takes long, and of which the client keeps no copy ---- */

enum {
    SOON_S = 20,  /* also on a busy machine */
    SOCKETS = 10, /* of each attack */
    CLIENTS = 3,
    UNREAD = 1 << 14,      /* bytes, more than the daemon reads of a connection that it refuses */
    MANY_UNREAD = 3 << 19, /* bytes, more than it reads to look for descriptors */
    SEND_BUFFER = 2 << 20,
};

static struct harness h;

/* Sends one byte with a socket, which then has no other copy. */
static void send_lingering_socket(const struct wire *w, int flags)
{
    const int fd = lingering_make();
    lingering_arm(fd);
    if (wire_try_descriptors(w->fd, "\x40", 1, &fd, 1, flags) < 0) {
        assert_true(errno == EPERM || errno == EPIPE || errno == ECONNRESET);
        lingering_disarm(fd);
    }
    close(fd);
}

/* Until the daemon goes on, it cannot close a socket that it got. So this process does not have the
 * last copy when it closes its own. */
static void stop_daemon(void)
{
    assert_true(harness_pause(&h));
}

static void expect_soon(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_true(now.tv_sec - start->tv_sec < SOON_S);
}

/* ---- Attacks with such sockets ---- */

static void send_and_stay_with(int flags)
{
    struct wire *w = wire_greet(&h);
    stop_daemon();
    send_lingering_socket(w, flags);
    harness_continue(&h);
    usleep(2000); /* the daemon reads the byte */
    wire_close(w);
}

static void send_and_stay(void)
{
    send_and_stay_with(0);
}

static void send_out_of_band(void)
{
    send_and_stay_with(MSG_OOB);
}

/* The byte out of band is behind others, and the daemon then reads these first. */
static void send_out_of_band_later(void)
{
    struct wire *w = wire_greet(&h);
    stop_daemon();
    wire_send_bytes(w, "\x40\0", 2);
    send_lingering_socket(w, MSG_OOB);
    wire_send_bytes(w, "\0", 1);
    harness_continue(&h);
    usleep(2000);
    wire_close(w);
}

/* A second byte out of band makes the first one an ordinary byte. */
static void send_out_of_band_twice(void)
{
    struct wire *w = wire_greet(&h);
    stop_daemon();
    send_lingering_socket(w, MSG_OOB);
    wire_send_bytes(w, "\0", 1);
    (void)!send(w->fd, "\0", 1, MSG_OOB | MSG_NOSIGNAL);
    harness_continue(&h);
    usleep(2000);
    wire_close(w);
}

/* The daemon has not read the byte when it closes the connection. */
static void send_and_leave(void)
{
    struct wire *w = wire_open(&h);
    stop_daemon();
    send_lingering_socket(w, 0);
    wire_close(w);
    harness_continue(&h);
}

static void send_unread(const struct wire *w, size_t size)
{
    static const uint8_t bytes[MANY_UNREAD];
    const int room = SEND_BUFFER;
    setsockopt(w->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room); /* fails without root */
    for (ssize_t sent; size > 0; size -= (size_t)sent)
        if ((sent = send(w->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT)) <= 0)
            return;
}

/* The daemon refuses the connection, and does not read all bytes. */
static void send_to_refusal_after(size_t size)
{
    struct wire *used[CLIENTS - 1], *refused;
    for (int i = 0; i < CLIENTS - 1; i++)
        used[i] = wire_greet(&h);
    stop_daemon();
    refused = wire_open(&h);
    send_unread(refused, size);
    send_lingering_socket(refused, MSG_DONTWAIT);
    wire_close(refused);
    harness_continue(&h);
    refused = wire_open(&h);
    wire_expect(refused, SHUF_BUSY, "clients 3: the most that may be connected");
    wire_close(refused);
    for (int i = 0; i < CLIENTS - 1; i++)
        wire_close(used[i]);
}

static void send_to_refusal(void)
{
    send_to_refusal_after(UNREAD);
}

static void send_to_refusal_behind_many_bytes(void)
{
    send_to_refusal_after(MANY_UNREAD);
}

static void (*const attacks[])(void) = {send_and_stay,
                                        send_out_of_band,
                                        send_and_leave,
                                        send_out_of_band_later,
                                        send_to_refusal,
                                        send_out_of_band_twice,
                                        send_to_refusal_behind_many_bytes};

enum { ATTACKS = sizeof attacks / sizeof *attacks };

/* ---- The daemon under these attacks ---- */

static void others_are_served(void **state)
{
    struct wire *w = wire_greet(&h);
    (void)state;
    wire_check_alive(w); /* makes a block */
    const unsigned before = wire_descriptors(h.pid);
    for (size_t i = 0; i < ATTACKS * SOCKETS; i++) {
        struct timespec start;
        clock_gettime(CLOCK_MONOTONIC, &start);
        attacks[i % ATTACKS]();
        wire_check_alive(w);
        WIRE_AWAIT(&h, s, s.clients == 2);
        expect_soon(&start);
    }
    lingering_end_all();
    for (unsigned waited = 0; wire_descriptors(h.pid) > before;) {
        wire_close(wire_greet(&h)); /* another call closes those that have waited */
        wire_wait(&waited, "no more descriptors than before");
    }
    wire_close(w);
}

/* More sockets wait to be closed than the daemon has children. */
static void daemon_ends_after_attacks(void **state)
{
    struct timespec start;
    (void)state;
    for (size_t i = 0; i < 2 * SOCKETS; i++) {
        send_and_leave();
        WIRE_AWAIT(&h, s, s.clients == 1); /* that of Status */
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    expect_soon(&start);
    lingering_end_all();
}

/* The daemon frees the connections in the backlog when it closes its listening socket. */
static void daemon_ends_beside_attacks(void **state)
{
    struct timespec start;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &start);
    stop_daemon();
    assert_int_equal(kill(h.pid, SIGTERM), 0);
    for (int i = 0; i < SOCKETS; i++) {
        struct wire *w = wire_open(&h);
        send_lingering_socket(w, 0);
        wire_close(w);
    }
    harness_continue(&h);
    assert_int_equal(harness_kill(&h, 0), 0);
    expect_soon(&start);
    lingering_end_all();
}

static int start(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "clients = 3\n");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

/* ---- Without processes: a full daemon serves those that it has, and does not spin ---- */

enum { FILES = 1024, MOST = 100 };

static bool is_logged(const char *text)
{
    char log[1 << 14];
    shufd_read(h.log, log, sizeof log);
    return strstr(log, text);
}

/* In units of 10 ms. */
static unsigned long processor_time(void)
{
    char path[64];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)h.pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file,
                            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                            &user, &system),
                     2);
    fclose(file);
    return user + system;
}

static void no_more_connections(void **state)
{
    static const char text[] =
        "accept: too many connections whose clients sent descriptors wait to "
        "be closed; trying again in 100 ms";
    int sent = 0;
    (void)state;
    if (!getenv("LD_PRELOAD"))
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, FILES}), 0);
    wire_start(&h, "cpu", "");
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    while (!is_logged(text)) {
        assert_true(sent++ < MOST);
        send_and_leave();
        wire_check_alive(w);
        usleep(10000);
    }
    const unsigned long before = processor_time();
    sleep(2);
    assert_true(processor_time() - before < 100); /* half of the time */
    wire_check_alive(w);
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    lingering_end_all();
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daemon_survives_floods),
        cmocka_unit_test(refused_connections_cost_one_read),
        cmocka_unit_test(refused_connections_do_not_delay_others),
    };
    const struct CMUnitTest socket_tests[] = {
        cmocka_unit_test_setup_teardown(others_are_served, start, stop),
        cmocka_unit_test_setup_teardown(daemon_ends_after_attacks, start, stop),
        cmocka_unit_test_setup_teardown(daemon_ends_beside_attacks, start, stop),
    };
    const struct CMUnitTest alone_tests[] = {
        cmocka_unit_test(no_more_connections),
    };
    if (argc > 1 && strcmp(argv[1], "no_processes") == 0)
        return cmocka_run_group_tests(alone_tests, NULL, NULL);
    harness_backend = harness_backend_or_skip(argc, argv);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (strcmp(harness_backend, "cpu") != 0)
        return failed;
    return failed + cmocka_run_group_tests(socket_tests, NULL, NULL);
}
