/* SPDX-License-Identifier: MIT
 *
 * Clients that send sockets whose close() takes long, and keep no copy. If the kernel does not
 * refuse these, the daemon does not wait for them: it serves other clients, and ends at once.
 *
 *     test_sent_sockets BACKEND
 */
#include "support/cmocka_all.h"
#include "support/lingering.h"
#include "support/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

/* ---- attacks ---- */

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

/* ---- tests ---- */

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_are_served, start, stop),
        cmocka_unit_test_setup_teardown(daemon_ends_after_attacks, start, stop),
        cmocka_unit_test_setup_teardown(daemon_ends_beside_attacks, start, stop),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
