/* SPDX-License-Identifier: MIT
 *
 * Clients that try to send descriptors, which no request needs, and clients that open connections
 * without end. The daemon still serves other clients. Afterwards it has no more descriptors open
 * than before.
 */
#include "support/bystander.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/shufd.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    DESCRIPTORS = 250, /* descriptors in a message; the kernel's limit is 253 */
    MESSAGES = 300,
    CONNECTIONS = 2000,
    AT_ONCE = 200,
};

static const char *backend;

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
            wire_lease(w, 10000, i % 5, wire_backend_transport(backend));
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
    wire_start(&h, backend, "cache_time = 0\n");
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
    wire_start(&h, backend, "clients = 1\n");
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

/* ---- a flood of refused connections ---- */

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
    wire_start(&h, backend, config);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(daemon_survives_floods),
        cmocka_unit_test(refused_connections_cost_one_read),
        cmocka_unit_test(refused_connections_do_not_delay_others),
    };
    backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
