/* SPDX-License-Identifier: MIT
 *
 * Clients that send sockets whose close() takes long, and keep no copy. If the kernel does not
 * refuse these, the daemon closes them, and still serves other clients.
 *
 *     test_sent_sockets BACKEND
 */
#include "support/cmocka_all.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    LINGER_S = 100,
    SOON_S = 20,  /* also on a busy machine */
    SOCKETS = 10, /* of an attack */
    CLIENTS = 3,
    UNREAD = 1 << 14, /* bytes, more than the daemon reads of a connection that it refuses */
};

static struct harness h;
static int readers[4 * SOCKETS];
static size_t reader_count;

/* A connection to a reader that never reads, with unsent bytes. */
static int connect_to_reader(void)
{
    static const uint8_t bytes[1 << 16];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    readers[reader_count] = accept(listening, NULL, NULL);
    assert_true(readers[reader_count++] >= 0);
    close(listening);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    return fd;
}

static void set_linger(int fd, int seconds)
{
    const struct linger linger = {.l_onoff = seconds > 0, .l_linger = seconds};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
}

static void send_lingering_socket(const struct wire *w)
{
    const int fd = connect_to_reader();
    set_linger(fd, LINGER_S);
    if (wire_try_descriptors(w->fd, "\x40", 1, &fd, 1) < 0) {
        assert_true(errno == EPERM || errno == EPIPE || errno == ECONNRESET);
        set_linger(fd, 0);
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

static void send_and_stay(void)
{
    struct wire *w = wire_greet(&h);
    stop_daemon();
    send_lingering_socket(w);
    harness_continue(&h);
    usleep(2000); /* the daemon reads the byte */
    wire_close(w);
}

/* The daemon has not read the byte when it closes the connection. */
static void send_and_leave(void)
{
    struct wire *w = wire_open(&h);
    stop_daemon();
    send_lingering_socket(w);
    wire_close(w);
    harness_continue(&h);
}

/* The daemon refuses the connection, and does not read all bytes. */
static void send_to_refusal(void)
{
    static const uint8_t bytes[UNREAD];
    struct wire *used[CLIENTS - 1], *refused;
    for (int i = 0; i < CLIENTS - 1; i++)
        used[i] = wire_greet(&h);
    stop_daemon();
    refused = wire_open(&h);
    assert_int_equal(send(refused->fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    send_lingering_socket(refused);
    wire_close(refused);
    harness_continue(&h);
    refused = wire_open(&h);
    wire_expect(refused, SHUF_BUSY, "clients 3: the most that may be connected");
    wire_close(refused);
    for (int i = 0; i < CLIENTS - 1; i++)
        wire_close(used[i]);
}

static void others_are_served(void **state)
{
    static void (*const attacks[])(void) = {send_and_stay, send_and_leave, send_to_refusal};
    struct wire *w = wire_greet(&h);
    (void)state;
    for (size_t attack = 0; attack < sizeof attacks / sizeof *attacks; attack++) {
        for (int i = 0; i < SOCKETS; i++) {
            struct timespec start;
            clock_gettime(CLOCK_MONOTONIC, &start);
            attacks[attack]();
            wire_check_alive(w);
            WIRE_AWAIT(&h, s, s.clients == 2);
            expect_soon(&start);
        }
    }
    wire_close(w);
    while (reader_count > 0)
        close(readers[--reader_count]);
}

/* The daemon frees the connections in the backlog when it closes its listening socket. */
static void daemon_ends(void **state)
{
    struct timespec start;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &start);
    stop_daemon();
    assert_int_equal(kill(h.pid, SIGTERM), 0);
    for (int i = 0; i < SOCKETS; i++) {
        struct wire *w = wire_open(&h);
        send_lingering_socket(w);
        wire_close(w);
    }
    harness_continue(&h);
    assert_int_equal(harness_kill(&h, 0), 0);
    expect_soon(&start);
    while (reader_count > 0)
        close(readers[--reader_count]);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_are_served, start, stop),
        cmocka_unit_test_setup_teardown(daemon_ends, start, stop),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
