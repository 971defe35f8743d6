/* SPDX-License-Identifier: MIT
 *
 * The daemon's messages to its service manager: it serves, it ends, or it is alive. If the device
 * hangs, no more messages say that the daemon is alive. The test takes the place of the service
 * manager.
 */
#include "service_manager.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    MESSAGE = 1024,
    WATCHDOG_MS = 400,
    SILENCE_MS = 3 * WATCHDOG_MS, /* a live daemon sends several messages in this time */
};

static int manager = -1; /* the service manager's socket */

static void open_manager(void)
{
    char path[64];
    socklen_t size = sizeof(struct sockaddr_un);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(manager >= 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    assert_int_equal(getsockname(manager, (struct sockaddr *)&address, &size), 0);
    snprintf(path, sizeof path, "@%.*s", (int)(size - sizeof(sa_family_t) - 1),
             address.sun_path + 1);
    setenv("NOTIFY_SOCKET", path, 1);
}

static void start(struct harness *h, bool watchdog)
{
    static const char *const settings[] = {"drain_timeout", "250s", "host_results", "host", NULL};
    char interval[32];
    snprintf(interval, sizeof interval, "%d", WATCHDOG_MS * 1000);
    open_manager();
    if (watchdog)
        setenv("WATCHDOG_USEC", interval, 1);
    else
        unsetenv("WATCHDOG_USEC");
    fake_backend_start(h, settings);
    unsetenv("NOTIFY_SOCKET");
}

/* Receives a message. Returns false if none arrives in this time. */
static bool receive_message(char text[MESSAGE], int ms)
{
    struct pollfd poll_fd = {.fd = manager, .events = POLLIN};
    if (poll(&poll_fd, 1, ms) != 1)
        return false;
    ssize_t length = recv(manager, text, MESSAGE - 1, 0);
    assert_true(length > 0);
    text[length] = '\0';
    return true;
}

static void expect_message(const char *expected)
{
    char text[MESSAGE];
    do
        assert_true(receive_message(text, HARNESS_WAIT_MS));
    while (strcmp(text, "WATCHDOG=1") == 0 && strcmp(expected, text) != 0);
    assert_string_equal(text, expected);
}

static void expect_ready(const struct harness *h)
{
    char text[MESSAGE];
    snprintf(text, sizeof text, "READY=1\nSTATUS=Serving on %s, backend fake: a fake device",
             h->socket);
    expect_message(text);
}

/* Discards messages that were sent before, and waits until no more follow. */
static void expect_silence(void)
{
    char text[MESSAGE];
    for (unsigned waited = 0; receive_message(text, SILENCE_MS); waited++)
        assert_true(waited < 100);
}

static void stop(struct harness *h, int code)
{
    int status = harness_kill(h, SIGTERM);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
    close(manager);
    assert_true(harness_stop(h));
}

static struct wire *send_permutation(const struct harness *h, uint64_t n)
{
    struct wire *w = wire_greet(h);
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &permute);
    return w;
}

/* ---- Tests ---- */

static void test_start_and_end_are_reported(void **state)
{
    struct harness h;
    (void)state;
    start(&h, false);
    expect_ready(&h);
    expect_silence(); /* without a watchdog there is no heartbeat */
    struct wire *w = send_permutation(&h, WAITING_N), *asking = wire_greet(&h);
    for (unsigned waited = 0; wire_ask_status(asking)->queued != 1;)
        wire_wait(&waited, "the job waits or runs");
    kill(h.pid, SIGTERM);
    expect_message("STOPPING=1\nSTATUS=Draining, 2 clients, 1 job\nEXTEND_TIMEOUT_USEC=265000000");
    wire_close(asking);
    stop(&h, EX_TEMPFAIL); /* while the job's client is there, or the job would end by itself */
    wire_close(w);
}

static void test_reload_is_reported(void **state)
{
    static const char expected[] = "RELOADING=1\nSTATUS=Reading the configuration\nMONOTONIC_USEC=";
    char text[MESSAGE];
    (void)state;
    open_manager();
    shuf__service_manager_reloading();
    assert_true(receive_message(text, HARNESS_WAIT_MS));
    assert_memory_equal(text, expected, sizeof expected - 1);
    assert_true(strtoull(text + sizeof expected - 1, NULL, 10) > 0);
    close(manager);
}

enum { CONF = HARNESS_PATH + 16 };

/* Starts a daemon with a configuration, and writes the path of its file. */
static void start_with_config(struct harness *h, char conf[CONF])
{
    char text[MESSAGE];
    open_manager();
    wire_start(h, "cpu", "leases = 5\n");
    unsetenv("NOTIFY_SOCKET");
    assert_true(receive_message(text, HARNESS_WAIT_MS));
    snprintf(conf, CONF, "%s/conf", h->directory);
}

/* Writes the message after the reload. */
static void reload(const struct harness *h, const char *conf, const char *lines, char text[MESSAGE])
{
    shufd_write(conf, lines);
    kill(h->pid, SIGHUP);
    assert_true(receive_message(text, HARNESS_WAIT_MS)); /* RELOADING */
    assert_true(receive_message(text, HARNESS_WAIT_MS));
}

/* Only the journal and this status show the mistake, because the reload itself succeeds. */
static void test_failed_reload_is_in_the_status(void **state)
{
    struct harness h;
    char conf[CONF], text[MESSAGE];
    (void)state;
    start_with_config(&h, conf);
    for (int correct = 0; correct < 2; correct++) {
        reload(&h, conf, correct ? "leases = 6\n" : "leases = none\n", text);
        assert_memory_equal(text, "READY=1\n", 8);
        assert_int_equal(strstr(text, "; the last reload failed: ") == NULL, correct);
        assert_int_equal(strstr(text, "conf:1: leases none: expected ") == NULL, correct);
        struct wire *w = wire_greet(&h);
        const char *fault = wire_ask_status(w)->reload_fault;
        assert_int_equal(strstr(fault, "the last reload failed: ") == NULL, correct);
        assert_int_equal(*fault == '\0', correct);
        wire_close(w);
    }
    assert_true(harness_stop(&h));
    close(manager);
}

/* Every user may read the status, and the name of a key is secret. */
static void test_failed_reload_of_keys_is_in_the_status(void **state)
{
    struct harness h;
    char conf[CONF], lines[2 * HARNESS_PATH], text[MESSAGE];
    (void)state;
    start_with_config(&h, conf);
    snprintf(lines, sizeof lines, "keys = %s/secret\nleases = 6\n", h.directory);
    reload(&h, conf, lines, text);
    assert_non_null(strstr(text, "; named keys not reloaded: the log names the reason"));
    assert_null(strstr(text, "the last reload failed"));
    assert_null(strstr(text, "secret"));
    assert_true(harness_stop(&h));
    close(manager);
}

static void test_heartbeat_of_an_idle_device(void **state)
{
    struct harness h;
    (void)state;
    start(&h, true);
    expect_ready(&h);
    for (int i = 0; i < 5; i++)
        expect_message("WATCHDOG=1");
    assert_true(seen->launches > 0); /* the probe was a launch on the device */
    stop(&h, EX_OK);
}

/* A computation longer than the watchdog's interval does not stop the heartbeat. */
static void test_heartbeat_of_a_busy_device(void **state)
{
    struct harness h;
    (void)state;
    start(&h, true);
    expect_ready(&h);
    struct wire *w = send_permutation(&h, WAITING_N);
    wire_await_queued(&h, 1);
    for (int i = 0; i < 10; i++)
        expect_message("WATCHDOG=1");
    wire_close(w);
    stop(&h, EX_OK);
}

/* The processors compute for long, and the GPU has no work: it is still probed. */
static void test_heartbeat_of_an_idle_device_beside_a_busy_host(void **state)
{
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    (void)state;
    faults->is_gpu = true;
    start(&h, true);
    expect_ready(&h);
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &endless);
    wire_await_queued(&h, 1);
    const unsigned before = seen->launches;
    for (int i = 0; i < 10; i++)
        expect_message("WATCHDOG=1");
    assert_true(seen->launches > before);
    assert_int_equal(wire_status(&h).queued, 1);
    wire_close(w);
    stop(&h, EX_OK);
}

static void start_for_users(struct harness *h)
{
    start(h, true);
    expect_ready(h);
    assert_int_equal(chmod(h->directory, 0755), 0);
    assert_int_equal(chmod(h->socket, 0666), 0);
}

/* The users' calls of the device are longer than a turn. */
static void test_heartbeat_while_users_take_turns(void **state)
{
    enum { USERS = 2, TIME_MS = 10 * WATCHDOG_MS, BEATS = 10 }; /* a quarter of the timer's ticks */
    struct harness h;
    struct wire *user[USERS];
    char text[MESSAGE];
    (void)state;
    if (geteuid() != 0) /* only root can be several users */
        skip();
    faults->is_gpu = true;
    faults->call_us = 35000;
    start_for_users(&h);
    for (unsigned i = 0; i < USERS; i++) {
        struct shuf__result_message endless =
            wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
        user[i] = wire_greet_as(&h, CHILD_NOBODY - i);
        wire_send_result(user[i], &endless);
        wire_await_queued(&h, i + 1);
    }
    while (receive_message(text, 0)) /* those of the idle device */
        continue;
    unsigned beats = 0;
    for (int waited = 0; waited < TIME_MS; waited += 100) {
        usleep(100000);
        while (receive_message(text, 0))
            beats++;
    }
    assert_in_range(beats, BEATS, 1000);
    for (unsigned i = 0; i < USERS; i++)
        wire_close(user[i]);
    stop(&h, EX_OK);
}

static void expect_no_heartbeat(struct harness *h)
{
    expect_silence();
    kill(h->pid, SIGKILL);
    assert_true(WIFSIGNALED(harness_kill(h, 0)));
    close(manager);
    assert_true(harness_stop(h));
}

static void test_no_heartbeat_of_a_hanging_probe(void **state)
{
    struct harness h;
    (void)state;
    start(&h, true);
    expect_ready(&h);
    expect_message("WATCHDOG=1");
    faults->hangs = true;
    expect_no_heartbeat(&h);
}

/* A cancelled job says nothing about the device, because its end needs no device. So it causes no
 * heartbeat. */
static void test_no_heartbeat_of_a_hanging_computation(void **state)
{
    struct harness h;
    char text[MESSAGE];
    (void)state;
    start(&h, true);
    expect_ready(&h);
    expect_message("WATCHDOG=1");
    faults->hangs = true;
    struct wire *running = send_permutation(&h, 100000);
    for (unsigned quiet = 0, jobs = 1; quiet < 12; jobs++) {
        struct wire *w = send_permutation(&h, 100000 + jobs);
        WIRE_AWAIT(&h, s, s.queued >= 2);
        wire_close(w);
        quiet = receive_message(text, WATCHDOG_MS / 4) ? 0 : quiet + 1;
        assert_true(jobs < 400);
    }
    wire_close(running);
    expect_no_heartbeat(&h);
}

/* A client may stop a job that reads or writes its buffer for as long as it wants, as by holes that
 * it punches without a pause. This says nothing about the device. */
static void expect_heartbeats_beside_a_client(bool writes)
{
    struct harness h;
    start(&h, true);
    expect_ready(&h);
    struct wire *w = wire_greet(&h);
    const Shuf__ResultReply b = wire_allocate(w, 4096, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    struct shuf__result_message shuffle =
        wire_shuffle_of(b.lease, 64, 64, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    faults->hangs = true;
    if (writes)
        wire_send_write(w, b.lease, 0, "data", 4);
    else
        wire_send_result(w, &shuffle);
    wire_await_queued(&h, 1);
    for (int i = 0; i < 10; i++)
        expect_message("WATCHDOG=1");
    kill(h.pid, SIGKILL);
    assert_true(WIFSIGNALED(harness_kill(&h, 0)));
    close(manager);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_heartbeat_while_a_job_waits_for_its_client(void **state)
{
    (void)state;
    expect_heartbeats_beside_a_client(false);
    expect_heartbeats_beside_a_client(true);
}

static void ask_until_the_end(int channel, void *harness)
{
    (void)channel;
    wire_expect_end(send_permutation(harness, 100000));
}

/* The job of another user needs a second lane, which never opens. The first one still works. */
static void test_no_heartbeat_of_a_lane_that_does_not_open(void **state)
{
    struct harness h;
    char text[MESSAGE];
    (void)state;
    if (geteuid() != 0) /* only root can be several users */
        skip();
    start_for_users(&h);
    expect_message("WATCHDOG=1");
    faults->open_hangs = true;
    struct wire *w = send_permutation(&h, WAITING_N);
    wire_await_queued(&h, 1);
    expect_message("WATCHDOG=1");
    const struct child other = child_start_as(CHILD_NOBODY, ask_until_the_end, &h);
    wire_await_queued(&h, 2);
    for (unsigned heard = 0; receive_message(text, SILENCE_MS); heard++)
        assert_true(heard < 40);
    expect_no_heartbeat(&h);
    child_join(&other);
    wire_close(w);
}

static void test_no_heartbeat_of_a_stopped_process(void **state)
{
    struct harness h;
    (void)state;
    start(&h, true);
    expect_ready(&h);
    expect_message("WATCHDOG=1");
    kill(h.pid, SIGSTOP);
    expect_no_heartbeat(&h);
}

/* Sends messages to the service manager until its queue is full. The kernel also limits the bytes
 * of each sender, so several senders fill it. */
static void fill_queue(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof address;
    int senders[64], count = 0, sent = 1;
    assert_int_equal(getsockname(manager, (struct sockaddr *)&address, &size), 0);
    while (sent > 0) {
        assert_in_range(count, 0, 63);
        senders[count] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        for (sent = 0; sendto(senders[count], "FULL=1", 6, MSG_DONTWAIT,
                              (struct sockaddr *)&address, size) > 0;)
            sent++;
        count++;
    }
    while (count > 0)
        close(senders[--count]);
}

/* The daemon serves and ends all the same. */
static void test_service_manager_that_does_not_read(void **state)
{
    struct harness h;
    (void)state;
    start(&h, true);
    expect_ready(&h);
    fill_queue();
    struct wire *w = wire_greet(&h);
    usleep(WATCHDOG_MS * 1000); /* two heartbeats do not fit */
    wire_check_alive(w);
    wire_close(w);
    stop(&h, EX_OK);
}

/* A start while the queue is full: the first heartbeat with room brings the report. */
static void test_unsent_report_is_sent_again(void **state)
{
    char text[MESSAGE];
    (void)state;
    open_manager();
    fill_queue();
    shuf__service_manager_ready("first");
    shuf__service_manager_ready("second");
    shuf__service_manager_alive();
    while (receive_message(text, 0))
        assert_string_equal(text, "FULL=1");
    shuf__service_manager_alive();
    expect_message("READY=1\nSTATUS=second");
    expect_message("WATCHDOG=1");
    shuf__service_manager_alive();
    expect_message("WATCHDOG=1");
    assert_false(receive_message(text, 0));
    unsetenv("NOTIFY_SOCKET");
    close(manager);
}

static void test_failing_probe_ends_the_daemon(void **state)
{
    struct harness h;
    (void)state;
    start(&h, true);
    expect_ready(&h);
    faults->permute_fails = true;
    int status = harness_kill(&h, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_IOERR);
    close(manager);
    assert_true(harness_stop(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_start_and_end_are_reported, fake_backend_reset),
        cmocka_unit_test(test_reload_is_reported),
        cmocka_unit_test(test_failed_reload_is_in_the_status),
        cmocka_unit_test(test_failed_reload_of_keys_is_in_the_status),
        cmocka_unit_test_setup(test_heartbeat_of_an_idle_device, fake_backend_reset),
        cmocka_unit_test_setup(test_heartbeat_of_a_busy_device, fake_backend_reset),
        cmocka_unit_test_setup(test_heartbeat_of_an_idle_device_beside_a_busy_host,
                               fake_backend_reset),
        cmocka_unit_test_setup(test_heartbeat_while_users_take_turns, fake_backend_reset),
        cmocka_unit_test_setup(test_no_heartbeat_of_a_hanging_probe, fake_backend_reset),
        cmocka_unit_test_setup(test_no_heartbeat_of_a_hanging_computation, fake_backend_reset),
        cmocka_unit_test_setup(test_heartbeat_while_a_job_waits_for_its_client, fake_backend_reset),
        cmocka_unit_test_setup(test_no_heartbeat_of_a_lane_that_does_not_open, fake_backend_reset),
        cmocka_unit_test_setup(test_no_heartbeat_of_a_stopped_process, fake_backend_reset),
        cmocka_unit_test_setup(test_service_manager_that_does_not_read, fake_backend_reset),
        cmocka_unit_test(test_unsent_report_is_sent_again),
        cmocka_unit_test_setup(test_failing_probe_ends_the_daemon, fake_backend_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
